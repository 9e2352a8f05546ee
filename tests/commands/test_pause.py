"""``jobqueue pause`` and ``jobqueue resume``."""

from __future__ import annotations

import getpass
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from django_jobqueue.models import JobType, Queue
from tests.commands.conftest import Said, jobqueue, not_refused, refusal
from tests.sample import jobs
from tests.stats.rows import worker as worker_row

pytestmark = pytest.mark.django_db
ADD, SAY = "tests.sample.add", "tests.sample.say"


def paused() -> set[str]:
    """The names of the job types and queues that are paused."""
    models = (JobType, Queue)
    return {row.name for model in models for row in model.objects.filter(paused=True)}


def test_a_pause_says_who_why_and_until_when() -> None:
    said = jobqueue(f"pause {ADD} --reason 'mail is down' --for 30m")
    job_type = JobType.objects.get(name=ADD)
    assert job_type.paused
    assert job_type.paused_by == f"command line ({getpass.getuser()})"
    assert job_type.paused_reason == "mail is down"
    assert job_type.resume_at is not None
    left = job_type.resume_at - timezone.now()
    assert timedelta(minutes=29) < left < timedelta(minutes=31)
    until = f"{job_type.resume_at:%Y-%m-%d %H:%M:%S}"
    assert said.out == f"Job types paused until {until}: {ADD}.\n"
    jobqueue("pause mail --queue --until 2096-01-02T03:04")
    assert Queue.objects.get().resume_at == datetime(2096, 1, 2, 3, 4, tzinfo=UTC)


def test_several_types_are_paused_and_resumed_at_once_or_none() -> None:
    message = refusal(f"pause {ADD} tests.sample.sya")
    assert message.startswith("There is no job type 'tests.sample.sya'. Did you mean")
    assert paused() == set()
    said = jobqueue(f"pause {SAY} {ADD} --reason x {SAY}")
    assert said.out == f"Job types paused until they are resumed: {ADD}, {SAY}.\n"
    assert "no job type 'nothing.like.it'" in refusal(f"resume {ADD} nothing.like.it")
    assert paused() == {ADD, SAY}
    said = jobqueue(f"resume {SAY} {ADD}")
    assert said.out == f"Job types resumed: {ADD}, {SAY}.\n"
    assert paused() == set()


def test_a_queue_that_nobody_names_is_paused_with_a_remark() -> None:
    JobType.objects.create(name="elsewhere.report", queue="reports")
    jobs.add.using(queue="mail", run_after=timedelta(hours=1)).enqueue(1)
    worker_row(queues=["night"])
    for wrong, name in (("repotrs", "reports"), ("mial", "mail"), ("nigth", "night")):
        said = jobqueue(f"pause {wrong} --queue")
        assert said.err == (
            f"No job type, worker or job names the queue {wrong!r}. Did you mean "
            f"{name!r}?\n"
        )
        assert said.out == f"Queues paused until they are resumed: {wrong}.\n"
    assert paused() == {"repotrs", "mial", "nigth"}
    assert jobqueue("pause mail reports night --queue").err == ""
    assert jobqueue("pause nowhere --queue", verbosity=0) == Said("", "")


def test_what_makes_no_sense_is_refused_with_a_reason() -> None:
    reasons = {
        "pause": "the following arguments are required: NAME",
        "resume": "the following arguments are required: NAME",
        "pause tests.sample.ad": "There is no job type 'tests.sample.ad'. Did",
        "resume tests.sample.ad": "There is no job type 'tests.sample.ad'. Did",
        "pause a,b --queue": "The name of a queue must have no space, comma",
        f"pause {'x' * 300} --queue": "The name of a queue must have at most",
        "resume '' --queue": "The name of a queue must be a name, not ''.",
        f"pause {ADD} --for x": "--for: 'x' is not a duration.",
        f"pause {ADD} --until x": "--until: 'x' is not a time.",
        f"pause {ADD} --until 2026-01-02T03:04": "--until: 2026-01-02 03:04:00 is",
        f"pause {ADD} --until 2096-01-02 --for 2h": "--for: not allowed with argument",
    }
    assert not_refused("", reasons) == {}
    assert paused() == set()


def test_a_pause_and_a_resume_say_what_they_found() -> None:
    for one, name, flags in (("job type", ADD, ""), ("queue", "mail", "--queue")):
        was_not = Said("", f"The {one} {name!r} was not paused.\n")
        assert jobqueue(f"resume {name} {flags}") == was_not
        jobqueue(f"pause {name} {flags} --for 1h")
        said = jobqueue(f"pause {name} {flags}")
        paused = f"{one.capitalize()}s paused until they are resumed: "
        assert said.out.startswith(paused)
        again = f"Already paused; reason and end are replaced: {name}.\n"
        assert again in said.err
        done = Said(f"{one.capitalize()}s resumed: {name}.\n", "")
        assert jobqueue(f"resume {name} {flags}") == done
        assert jobqueue(f"resume {name} {flags}") == was_not
    jobqueue(f"pause {SAY}")
    told = jobqueue(f"pause {ADD} {SAY} --for 1h --format json").json
    assert (told["paused"], told["replaced"]) == ([ADD, SAY], [SAY])
    assert datetime.fromisoformat(told["until"]) > timezone.now()
    jobqueue(f"resume {ADD}")
    told = jobqueue(f"resume {ADD} {SAY} --format json").json
    assert told == {"resumed": [SAY], "not_paused": [ADD]}
