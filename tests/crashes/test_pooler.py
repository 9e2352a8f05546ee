"""Behind PgBouncer in transaction mode: no LISTEN, no session state."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from testproject.postgres import database_settings
from tests.crashes.seen import children, ends, kill, starts
from tests.sample import jobs
from tests.support.doomed_server import Doomed
from tests.support.waiting import eventually

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")

pytestmark = [
    pytest.mark.processes,
    pytest.mark.servers,
    pytest.mark.skipif(PGBOUNCER is None, reason="needs PgBouncer"),
]

CONFIGURATION = """
[databases]
postgres = host={host} user=postgres dbname=postgres
[pgbouncer]
listen_addr =
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = 4
logfile = {folder}/log
pidfile = {folder}/pid
"""

LEFTOVER = """
SELECT name, setting FROM pg_settings
 WHERE source = 'session' AND (name LIKE 'enable%' OR name LIKE '%timeout'
       OR name IN ('plan_cache_mode', 'jit', 'random_page_cost'))
"""


@pytest.fixture
def pooled(doomed: Doomed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the doomed server through a pooler."""
    folder = Path(doomed.folder) / "pooler"
    folder.mkdir()
    host = database_settings(doomed.url)["HOST"]
    (folder / "ini").write_text(CONFIGURATION.format(host=host, folder=folder))
    user = doomed.server.system_user
    if user is not None:  # we are root, which PgBouncer refuses to be
        shutil.chown(folder, user)
        os.chmod(folder.parent, 0o755)
    process = subprocess.Popen([str(PGBOUNCER), "-q", str(folder / "ini")], user=user)
    eventually(lambda: (folder / ".s.PGSQL.6432").exists())
    yield f"postgresql://postgres@{str(folder).replace('/', '%2F')}:6432/postgres"
    process.terminate()
    process.wait()


def test_jobs_run_behind_a_transaction_pooler(
    doomed: Doomed, pooled: str, journal: str
) -> None:
    run = doomed.runworkers("--threads", "2", "--lease", "60", DATABASE_URL=pooled)
    eventually(lambda: "looks like a transaction pooler" in run.output)
    words = [f"w{number}" for number in range(20)]
    for word in words:
        doomed.enqueue("write", journal, word)
        doomed.enqueue("write_limited", journal, f"limited-{word}")
    eventually(doomed.is_empty, what=lambda: run.output)
    assert set(doomed.statuses()) == {"succeeded"}
    assert sum(ends(journal).values()) == 2 * len(words)

    doomed.enqueue("await_leave", journal, "killed")
    eventually(lambda: starts(journal)["killed"])
    (worker,) = workers(doomed)
    assert worker in children(run.process.pid)
    kill(worker)
    jobs.give_leave(journal, "killed")
    eventually(lambda: ends(journal)["killed"])
    assert run.stop() == 0
    assert leftover_settings(pooled) == set()


def workers(doomed: Doomed) -> list[int]:
    rows = doomed.query("SELECT pid FROM jobqueue_worker WHERE state = 'running'")
    return [pid for (pid,) in rows]


def leftover_settings(pooled: str) -> set[str]:
    """What the workers set on the pooler's connections, as others find it there."""
    import psycopg

    parts = database_settings(pooled)
    seen = set()
    for _ in range(8):
        with psycopg.connect(
            host=parts["HOST"], port=parts["PORT"], user="postgres", dbname="postgres"
        ) as connection:
            rows = connection.execute(LEFTOVER, prepare=False).fetchall()
            seen |= {f"{name} = {value}" for name, value in rows}
    return seen
