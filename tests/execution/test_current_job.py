"""``current_job()``: the attempt that runs here, and nowhere else."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async

from django_jobqueue import Context, NoCurrentJob, current_job
from django_jobqueue.domain.retry_decision import StopReason
from django_jobqueue.execution.attempt_steps import arun, run
from tests.execution.test_attempt import attempt_of


def test_outside_of_a_job_there_is_none() -> None:
    with pytest.raises(NoCurrentJob, match="No job runs here"):
        current_job()
    assert current_job(default=None) is None


def test_a_handler_and_what_it_calls_know_the_attempt() -> None:
    def deeper() -> Context:
        return current_job()

    def handler(context: Context, a: int) -> bool:
        found.append(deeper())
        return context is current_job()

    found: list[Context] = []
    attempt = attempt_of(handler, '{"a": 1}', takes_context=True)
    assert run(attempt).outcome.result == "true"
    assert found[0].id == attempt.job.id
    assert found[0].data == {"a": 1}
    assert found[0].fence == attempt.job.fence
    assert current_job(default=None) is None
    unasked = attempt_of(lambda: None)
    run(unasked)
    assert unasked.context is None, "it is made for who asks"


def test_async_handlers_each_know_their_own() -> None:
    async def handler() -> str:
        before = current_job()
        await asyncio.sleep(0)
        assert current_job() is before
        return str(before.id)

    async def both() -> list[Any]:
        made = [attempt_of(handler), attempt_of(handler)]
        ended = await asyncio.gather(*map(arun, made))
        return [(a.job.id, f.outcome.result) for a, f in zip(made, ended, strict=True)]

    for id, result in asyncio.run(both()):
        assert result == f'"{id}"'


def test_threads_of_asgiref_know_it() -> None:
    async def handler() -> bool:
        return await sync_to_async(lambda: current_job())() is current_job()

    assert asyncio.run(arun(attempt_of(handler))).outcome.result == "true"

    async def inner() -> Context:
        return current_job()

    def sync_handler() -> bool:
        return async_to_sync(inner)() is current_job()

    assert run(attempt_of(sync_handler)).outcome.result == "true"


def test_a_thread_of_one_s_own_knows_it_if_the_context_is_taken_along() -> None:
    found: list[object] = []

    def look() -> None:
        found.append(current_job(default=None))

    def handler() -> None:
        copied = contextvars.copy_context()
        for target in (look, lambda: copied.run(look)):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()

    attempt = attempt_of(handler)
    run(attempt)
    assert found == [None, attempt.context]


def test_an_attempt_inside_another_gives_way_to_it_again() -> None:
    inner = attempt_of(lambda: str(current_job().id))

    def handler() -> list[str | None]:
        return [run(inner).outcome.result, str(current_job().id)]

    outer = attempt_of(handler)
    ids = json.loads(run(outer).outcome.result or "")
    assert ids == [f'"{inner.job.id}"', str(outer.job.id)]
    late = attempt_of(lambda: None)
    late.begin()
    late.interrupt(StopReason.CANCEL)
    assert late.here().cancelled, "a context that is made late knows it"
    late.leave()


def test_metadata_is_a_dict_of_its_own_and_kept_in_memory_without_a_worker() -> None:
    def handler() -> None:
        job = current_job()
        job.metadata["step"] = 2
        job.save_metadata()
        job.log("about to fail")
        raise ValueError("failed")

    assert attempt_of(handler).here().metadata == {}
    rich = attempt_of(handler)
    rich.job = rich.job._replace(metadata='{"trace": "t-1"}')
    assert rich.here().metadata == {"trace": "t-1"}
    assert run(rich).log_tail.endswith("INFO about to fail")
    assert rich.here().metadata == {"trace": "t-1", "step": 2}
