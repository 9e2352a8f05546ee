"""Remote workers in real programs: they do their jobs, and may be killed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db.models import F, Sum
from django.test import override_settings

from django_jobqueue import enqueue_many
from django_jobqueue.contrib.http.token_operations import create_token
from django_jobqueue.contrib.remote import worker_routes
from django_jobqueue.models import (
    ArchivedJob,
    Failure,
    JobType,
    QueuedJob,
    Total,
    Worker,
)
from tests.support.commands import ROOT
from tests.support.rows import archived
from tests.support.run_workers import RunWorkers
from tests.support.selection import some_slow
from tests.support.waiting import eventually

EXAMPLES = ROOT / "docs" / "guides" / "remote"
TYPE = "fleet.resize"
LEASE = 10  # seconds, the least
NODE = shutil.which("node")
SHELL = all(map(shutil.which, ("sh", "curl", "jq")))

pytestmark = [pytest.mark.processes, pytest.mark.timeout(120)]
needs_node = pytest.mark.skipif(NODE is None, reason="needs Node")


@pytest.fixture
def site(live_server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of the API. No claim waits there for jobs, so that a program ends as
    soon as it is told to."""
    JobType.objects.create(name=TYPE, max_crashes=100)
    monkeypatch.setattr(worker_routes, "PAUSE_SECONDS", 0.05)
    settings = {"HTTP_REQUIRE_TLS": False, "HTTP_LONG_POLLS": 0}
    with override_settings(JOBQUEUE=settings):
        yield f"{live_server.url}/jobqueue"


class Programs:
    def __init__(self, url: str, folder: Path) -> None:
        token = create_token("fleet", ["work"]).text
        self.env = {**os.environ, "JOBQUEUE_URL": url, "JOBQUEUE_TOKEN": token}
        self._folder = folder
        self._made: list[subprocess.Popen[bytes]] = []

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        """Start one more."""
        log = self._folder / f"remote-{len(self._made)}.log"
        with log.open("wb") as file:
            made = subprocess.Popen(
                command,
                env={**self.env, "LEASE": str(LEASE)},
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        self._made.append(made)
        return made

    def node(self) -> subprocess.Popen[bytes]:
        return self.start(str(NODE), str(EXAMPLES / "worker.mjs"))

    def close(self) -> None:
        for one in self._made:
            if one.poll() is None:
                os.killpg(one.pid, signal.SIGKILL)
            one.wait()

    @property
    def output(self) -> str:
        return "\n".join(path.read_text() for path in self._folder.glob("remote-*"))


@pytest.fixture
def programs(site: str, tmp_path: Path) -> Iterator[Programs]:
    made = Programs(site, tmp_path)
    yield made
    made.close()


def all_over(count: int) -> bool:
    return ArchivedJob.objects.count() == count and not QueuedJob.objects.exists()


def check_images(count: int) -> list[ArchivedJob]:
    """Those of all are resized, but for one that nobody has; returns the jobs."""
    done = archived(status="succeeded")
    assert sorted(job.result["image"] for job in done) == list(range(count))
    (failed,) = archived(status="failed")
    assert "no image -1" in failed.error_message
    return done


def check_good_end(programs: Programs, program: subprocess.Popen[bytes]) -> None:
    os.killpg(program.pid, signal.SIGTERM)
    assert program.wait(40) == 0, programs.output


@pytest.mark.skipif(not SHELL, reason="needs curl and jq")
def test_the_example_for_the_shell_works(programs: Programs) -> None:
    enqueue_many(TYPE, [{"image": number} for number in range(-1, 3)])
    program = programs.start("sh", str(EXAMPLES / "worker.sh"))
    eventually(lambda: all_over(4), what=lambda: f"jobs to end:\n{programs.output}")
    check_images(3)
    check_good_end(programs, program)
    assert Worker.objects.get().state == "stopped"


@needs_node
@pytest.mark.parametrize(("total", "kills"), some_slow([(2, 0), (12, 2)], [(2, 0)]))
def test_nothing_is_lost_when_programs_are_killed(
    programs: Programs, runworkers: Callable[..., RunWorkers], total: int, kills: int
) -> None:
    killed: list[int] = []
    runworkers("--threads", "1", "--queues", "other", "--lease", "2").started()
    enqueue_many(TYPE, [{"image": n, "ms": 400} for n in range(-1, total)])
    alive = [programs.node() for _ in range(2 if kills else 1)]
    for _ in range(kills):
        eventually(
            lambda: QueuedJob.objects.filter(status="running").count() > 4,
            what=lambda: f"jobs of both to run:\n{programs.output}",
        )
        victim = alive.pop(random.randrange(len(alive)))
        name = f"node-{victim.pid}"
        eventually(lambda name=name: Worker.objects.filter(name=name), what=name)
        victim.kill()
        victim.wait()
        # Its lease was granted some seconds ago.
        Worker.objects.filter(name=name).update(lease_until=F("renewed_at"))
        killed.append(victim.pid)
        alive.append(programs.node())
    eventually(lambda: all_over(total + 1), within=90, what=lambda: programs.output)
    lost = Worker.objects.filter(state="lost")
    eventually(lambda: lost.count() == kills, within=60, what="leases to lapse")
    done = check_images(total)
    assert {job.attempts for job in done} == {1}  # a crash spends none
    crashes = ArchivedJob.objects.aggregate(n=Sum("crashes"))["n"]
    assert {one.name for one in lost} == {f"node-{pid}" for pid in killed}
    assert bool(crashes) == bool(kills)
    eventually(
        lambda: sum(one.rescued.get("queued", 0) for one in lost.all()) == crashes,
        what="the rows of the dead to say what became of their jobs",
    )
    assert Failure.objects.filter(end="crashed").count() == crashes
    counts = Total.objects.filter(job_type=TYPE).aggregate(
        done=Sum("attempts_succeeded"), crashed=Sum("attempts_crashed")
    )
    assert counts == {"done": total, "crashed": crashes}
    for program in alive:
        check_good_end(programs, program)
