"""Remote workers in real programs: they do their jobs, and may be killed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.db.models import F, Sum
from django.test import override_settings

from django_jobqueue import enqueue, enqueue_many
from django_jobqueue.http import worker_routes
from django_jobqueue.models import (
    ArchivedJob,
    Failure,
    JobType,
    QueuedJob,
    Total,
    Worker,
)
from django_jobqueue.operations import create_token
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
def site(live_server: Any) -> Iterator[str]:
    """The address of the API. What waits there for jobs of a killed program ends with
    the test, not after half a minute."""
    JobType.objects.create(name=TYPE)
    settings = {"HTTP_REQUIRE_TLS": False, "HTTP_LONG_POLLS": 10}
    with override_settings(JOBQUEUE=settings):
        yield f"{live_server.url}/jobqueue"
    Worker.objects.all().delete()


class Programs:
    """Remote workers that were started, and what they wrote."""

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
        """Start the example for Node."""
        return self.start(str(NODE), str(EXAMPLES / "worker.mjs"))

    def close(self) -> None:
        """Kill those that are left, with what they started."""
        for one in self._made:
            if one.poll() is None:
                os.killpg(one.pid, signal.SIGKILL)
            one.wait()

    @property
    def output(self) -> str:
        """Everything that they wrote."""
        return "\n".join(path.read_text() for path in self._folder.glob("remote-*"))


@pytest.fixture
def programs(site: str, tmp_path: Path) -> Iterator[Programs]:
    """Starts remote workers."""
    made = Programs(site, tmp_path)
    yield made
    made.close()


def all_over(count: int) -> bool:
    """Whether so many jobs are archived, and none waits."""
    return ArchivedJob.objects.count() == count and not QueuedJob.objects.exists()


@pytest.fixture
def no_waits(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No claim waits for jobs, so that a program ends as soon as it is told to."""
    settings.JOBQUEUE = {"HTTP_REQUIRE_TLS": False, "HTTP_LONG_POLLS": 0}
    monkeypatch.setattr(worker_routes, "PAUSE_SECONDS", 0.05)


def work_through(programs: Programs, *command: str) -> None:
    """Have a program do four jobs, of which one fails, and end in good order."""
    enqueue_many(TYPE, [{"image": number} for number in [*range(3), -1]])
    program = programs.start(*command)
    eventually(lambda: all_over(4), what=lambda: f"jobs to end:\n{programs.output}")
    results = [job.result for job in archived(status="succeeded")]
    assert sorted(result["image"] for result in results) == list(range(3))
    (failed,) = archived(status="failed")
    assert "no image -1" in failed.error_message
    os.killpg(program.pid, signal.SIGTERM)
    assert program.wait(40) == 0, programs.output
    assert Worker.objects.get().state == "stopped"


@needs_node
def test_the_example_for_node_works(programs: Programs, no_waits: None) -> None:
    work_through(programs, str(NODE), str(EXAMPLES / "worker.mjs"))


@pytest.mark.skipif(not SHELL, reason="needs curl and jq")
def test_the_example_for_the_shell_works(programs: Programs, no_waits: None) -> None:
    work_through(programs, "sh", str(EXAMPLES / "worker.sh"))


def let_leases_lapse(name: str) -> None:
    """That of this worker was granted some seconds ago."""
    Worker.objects.filter(name=name).update(lease_until=F("renewed_at"))


@needs_node
@pytest.mark.parametrize(
    ("total", "kills", "hurried"),
    some_slow([(12, 2, True), (60, 5, False)], [(12, 2, True)], "leases of 10 s"),
)
def test_nothing_is_lost_when_programs_are_killed(
    programs: Programs,
    runworkers: Callable[..., RunWorkers],
    total: int,
    kills: int,
    hurried: bool,
) -> None:
    killed: list[int] = []
    JobType.objects.update(max_crashes=100)
    runworkers("--threads", "1", "--queues", "other", "--lease", "2").started()
    enqueue_many(TYPE, [{"image": n, "ms": 400} for n in range(total)])
    alive = [programs.node() for _ in range(2)]
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
        if hurried:
            let_leases_lapse(name)
        killed.append(victim.pid)
        alive.append(programs.node())
    eventually(
        lambda: all_over(total), within=90, what=lambda: f"the end:\n{programs.output}"
    )
    eventually(
        lambda: Worker.objects.filter(state="lost").count() == kills,
        within=60,
        what="leases to lapse",
    )
    done = archived(status="succeeded")
    assert sorted(job.result["image"] for job in done) == list(range(total))
    assert {job.attempts for job in done} == {1}  # a crash spends none
    crashes = ArchivedJob.objects.aggregate(n=Sum("crashes"))["n"]
    lost = Worker.objects.filter(state="lost")
    assert {one.name for one in lost} == {f"node-{pid}" for pid in killed}
    assert crashes > 0
    eventually(
        lambda: sum(one.rescued.get("queued", 0) for one in lost.all()) == crashes,
        what="the rows of the dead to say what became of their jobs",
    )
    assert Failure.objects.filter(end="crashed").count() == crashes
    counts = Total.objects.filter(job_type=TYPE).aggregate(
        done=Sum("attempts_succeeded"), crashed=Sum("attempts_crashed")
    )
    assert counts == {"done": total, "crashed": crashes}


def test_a_claim_that_waits_is_woken(programs: Programs) -> None:
    def send(path: str, body: Any) -> Any:
        request = urllib.request.Request(
            f"{programs.env['JOBQUEUE_URL']}/v1{path}",
            data=json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {programs.env['JOBQUEUE_TOKEN']}",
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(request, timeout=40) as response:
            return json.load(response)

    worker = send("/workers", {"name": "n", "job_types": [TYPE]})["id"]
    answers: list[Any] = []

    def claim() -> None:
        try:
            path = f"/workers/{worker}/claim"
            answers.append(send(path, {"limit": 1, "wait": 30}))
        finally:
            connections.close_all()

    thread = threading.Thread(target=claim)
    thread.start()
    eventually(lambda: Worker.objects.get().listening, what="the worker to wait")
    job = enqueue(TYPE, {"image": 1})
    thread.join(40)
    (given,) = answers[0]["jobs"]
    assert given["id"] == f"job_{job.id}"
    eventually(lambda: not Worker.objects.get().listening, what="the worker to be busy")
