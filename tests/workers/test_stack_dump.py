"""Where is it now? A worker tells the stacks of its jobs and threads."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.models import Worker
from django_jobqueue.processes.loop import FOREVER
from django_jobqueue.store import worker_rows
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.worker_rows import Beat
from django_jobqueue.workers import stack_dump as stacks_file
from django_jobqueue.workers.stack_dump import stacks
from tests.sample import jobs
from tests.sample.jobs import notes
from tests.support.hand_driven import HandDriven, Make
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

SECRET = "hunter2-is-not-a-password"


def claimed(driven: HandDriven, count: int = 1) -> None:
    """Claim, and wait until so many handlers have begun."""
    driven.claim()
    eventually(
        lambda: (
            sum(a.started > 0 for e in driven.worker.executors for a in e.running)
            == count
        )
    )


def of_jobs(driven: HandDriven) -> list[dict[str, Any]]:
    found = stacks(driven.worker.executors)["stacks"]
    return [one for one in found if "job_id" in one]


def functions(stack: str) -> list[str]:
    """The functions of a stack, outermost first."""
    places = [line for line in stack.splitlines() if line.startswith("  File ")]
    return [line.rpartition(" in ")[2] for line in places]


@pytest.fixture
def worker(make_worker: Make) -> Iterator[HandDriven]:
    """Its jobs are interrupted at the end."""
    driven = make_worker()
    yield driven
    driven.worker.interrupt()
    driven.complete()


def test_a_thread_tells_where_its_handler_is_and_no_value(worker: HandDriven) -> None:
    before = time.monotonic()
    made = jobs.slow.enqueue(word=SECRET)
    claimed(worker)
    (one,) = of_jobs(worker)
    assert (one["job_id"], one["job_type"]) == (str(made.id), "tests.sample.slow")
    assert 0 <= one["seconds"] <= time.monotonic() - before
    assert functions(one["stack"])[0] == "slow"
    assert "tests/sample/jobs.py" in one["stack"]
    assert SECRET not in json.dumps(stacks(worker.worker.executors))


def test_a_coroutine_tells_what_it_waits_for(worker: HandDriven) -> None:
    made = [jobs.aslow.enqueue().id for _ in range(2)]
    claimed(worker, 2)
    found = eventually(
        lambda: (
            [one for one in of_jobs(worker) if "sleep" in one["stack"]][1:]
            and of_jobs(worker)
        )
    )
    assert {one["job_id"] for one in found} == set(map(str, made))
    for one in found:
        assert functions(one["stack"]) == ["aslow", "sleep"]


def test_the_job_that_has_run_longest_is_told_first(worker: HandDriven) -> None:
    made = [jobs.slow.enqueue().id]
    claimed(worker)
    made.append(jobs.aslow.enqueue().id)
    worker.dispatcher.jobs_arrived()
    claimed(worker, 2)
    assert [one["job_id"] for one in of_jobs(worker)] == list(map(str, made))


def test_other_threads_tell_where_they_are_without_jobs_or_secrets(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.aadd.enqueue(1)
    worker.work()
    found = stacks(worker.worker.executors)["stacks"]
    assert not [one for one in found if "job_id" in one]
    (loop,) = [one for one in found if one["thread"] == "jobs-async"]
    assert "run_forever" in functions(loop["stack"])

    code = ['  File "a.py", line 1, in f\n    connect("postgres://shop:s3cr3t@db")\n']
    monkeypatch.setattr("traceback.StackSummary.format", lambda self: code)
    told = json.dumps(stacks(worker.worker.executors))
    assert "connect" in told
    assert "s3cr3t" not in told


def test_an_answer_is_bounded(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(4):
        jobs.slow.enqueue()
    claimed(worker, 4)
    whole = stacks(worker.worker.executors)
    assert whole["left_out"] == 0
    monkeypatch.setattr(stacks_file, "LARGEST", 1_200)
    told = stacks(worker.worker.executors)
    assert 0 < len(told["stacks"]) < len(whole["stacks"])
    assert len(told["stacks"]) + told["left_out"] == len(whole["stacks"])
    assert sum(len(one["stack"]) for one in told["stacks"]) < 1_200


def test_a_question_is_answered_once(worker: HandDriven, own: OwnConnection) -> None:
    id = worker.worker.id
    beat = [Beat(id, 0, 0, False)]
    assert worker_rows.renew(own, beat, 15)[id] == ("", 0)
    assert operations.request_stack_dumps([id, 999], by="anna") == [id]
    stack_request = worker_rows.renew(own, beat, 15)[id].stack_request
    assert stack_request > 0

    stack_dumper = worker.worker.stack_dumper
    assert not stack_dumper.has_started
    stack_dumper.request(0)
    assert not stack_dumper.has_started  # nobody has asked
    stack_dumper.request(stack_request)
    eventually(lambda: Worker.objects.get(pk=id).stack_dump)
    row = Worker.objects.get(pk=id)
    asked = row.request["stack_request"]
    assert row.stack_dump["stack_request"] == asked == stack_request
    assert row.stack_dump["left_out"] == 0
    assert stack_dumper.stop(10)
    Worker.objects.update(stack_dump=None)
    assert stack_dumper.tick() == FOREVER
    assert Worker.objects.get(pk=id).stack_dump is None

    operations.request_stack_dumps([id])
    assert worker_rows.renew(own, beat, 15)[id].stack_request > stack_request


def test_a_host_says_when_it_heard(worker: HandDriven, own: OwnConnection) -> None:
    id = worker.worker.id
    beat = [Beat(id, 0, 0, False)]
    operations.ask_workers([id], "drain")
    assert set(Worker.objects.get().request) == {"asked_at"}
    before = timezone.now()
    worker_rows.renew(own, beat, 15)
    first = Worker.objects.get().request
    assert set(first) == {"asked_at", "heard_at"}
    worker_rows.renew(own, beat, 15)
    assert Worker.objects.get().request == first
    assert first["heard_at"] > before.isoformat()[:19]
    operations.ask_workers([id], "resume")
    assert "heard_at" not in Worker.objects.get().request


@pytest.mark.processes
def test_a_running_process_answers(
    runworkers: Callable[..., RunWorkers], journal: str
) -> None:
    """Long before its next heartbeat, since it hears the notification."""
    runner = runworkers("--processes", "1", "--lease", "60")
    runner.started()
    made = jobs.write.enqueue(journal, "there", 60)
    eventually(lambda: notes(journal) == [["start", "there"]], what=runner.output)
    (id,) = operations.request_stack_dumps(
        list(Worker.objects.values_list("pk", flat=True))
    )
    answer = eventually(
        lambda: Worker.objects.get(pk=id).stack_dump, what=f"an answer: {runner.output}"
    )
    (one,) = [one for one in answer["stacks"] if "job_id" in one]
    assert one["job_id"] == str(made.id)
    assert "time.sleep(seconds)" in one["stack"]
