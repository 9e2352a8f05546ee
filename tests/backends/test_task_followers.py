"""Tasks that follow on tasks and jobs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from django_jobqueue import InvalidArguments, cancel, job
from django_jobqueue.backends.compat import InvalidTask
from tests.sample import jobs, tasks
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_task_has_followers_by_outcome(worker: HandDriven) -> None:
    good, bad = tasks.with_followers.enqueue(), tasks.with_followers.enqueue(fails=True)
    made = jobs.add.using(on_success=tasks.after_success).enqueue(1, 2)
    worker.work()
    (after,) = archived(follows=good.id)
    assert after.job_type_id == tasks.after_success.module_path
    assert after.result == ["after", "done"]
    assert tasks.after_success.get_result(str(after.id)).return_value == after.result
    results = {row.job_type_id: row.result for row in archived(follows=bad.id)}
    assert results.pop(tasks.after_failure.module_path) == "LookupError"
    (any_,) = results.values()
    assert any_["error_message"] == "no"
    assert archived(follows=made.id)[0].result == ["after", 3]


def test_a_chain_of_one_task_keeps_the_options_of_each_link(worker: HandDriven) -> None:
    later: Any = tasks.after_success.using(
        run_after=timedelta(hours=1), queue_name="mail", priority=7, tags=["x"]
    )
    middle = tasks.after_success.using(on_success=jobs.on_good, on_complete=[later])
    first = tasks.add.using(on_success=middle).enqueue(1, 2)
    worker.work()
    (second,) = archived(follows=first.id)
    assert second.result == ["after", 3]
    assert archived(follows=second.id)[0].result == ["after", 3]
    (third,) = queued(follows=second.id)
    assert (third.queue, third.priority, third.tags) == ("mail", 7, ["x"])
    assert third.run_after - third.created_at > timedelta(minutes=59)


def test_an_option_that_a_follower_cannot_have_is_refused() -> None:
    with pytest.raises(InvalidTask, match="max_crashes belongs to all jobs of"):
        tasks.add.using(on_success=tasks.after_success.using(max_crashes=5)).enqueue(1)
    named = tasks.after_success.using(enqueued_by="anna")
    with pytest.raises(InvalidTask, match="with enqueued_by, which a follower"):
        tasks.add.using(on_success=named).enqueue(1)
    with pytest.raises(InvalidArguments, match="nothing but job, status, result, err"):
        jobs.add.using(on_failure=tasks.fail_with)
    assert not queued()


def test_a_task_of_another_backend_follows_by_its_name() -> None:
    """A project whose tests use Django's dummy backend declares its jobs all the
    same."""

    class Other:
        module_path = tasks.after_success.module_path

    def nothing() -> None: ...

    options: Any = {"on_success": Other()}
    made = job(name="stories.first", **options)(nothing).enqueue()
    cancel([made.id])
    assert queued() == []
    followers = {"on_success": [tasks.after_success.module_path]}
    assert archived(id=made.id)[0].followers == followers
