"""``jobqueue pause`` and ``jobqueue resume``."""

from __future__ import annotations

import getpass
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management.base import CommandError
from django.utils import timezone

from django_jobqueue.models import JobType, Queue
from tests.commands.conftest import jobqueue
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued

pytestmark = pytest.mark.django_db


def refusal(*arguments: str) -> str:
    """What the command says when it refuses; nothing may have been paused."""
    with pytest.raises(CommandError) as refused:
        jobqueue(*arguments)
    assert not JobType.objects.filter(paused=True).exists()
    assert not Queue.objects.filter(paused=True).exists()
    return str(refused.value)


@pytest.mark.django_db(transaction=True)
def test_jobs_of_a_paused_type_are_not_claimed_until_it_is_resumed(
    worker: HandDriven,
) -> None:
    jobs.add.enqueue(1)
    jobqueue("pause", "tests.sample.add")
    worker.claim()
    assert [job.status for job in queued()] == ["queued"]

    jobqueue("resume", "tests.sample.add")
    worker.work()
    assert [job.status for job in archived()] == ["succeeded"]


@pytest.mark.django_db(transaction=True)
def test_jobs_of_a_paused_queue_are_not_claimed_until_it_is_resumed(
    worker: HandDriven,
) -> None:
    jobs.add.using(queue="mail").enqueue(1)
    jobqueue("pause", "mail", "--queue")
    worker.claim()
    assert [job.status for job in queued()] == ["queued"]

    jobqueue("resume", "mail", "--queue")
    worker.work()
    assert [job.status for job in archived()] == ["succeeded"]


def test_a_pause_says_who_why_and_until_when() -> None:
    said = jobqueue(
        "pause", "tests.sample.add", "--reason", "mail is down", "--for", "30m"
    )
    job_type = JobType.objects.get(name="tests.sample.add")
    assert job_type.paused
    assert job_type.paused_by == f"command line ({getpass.getuser()})"
    assert job_type.paused_reason == "mail is down"
    assert job_type.resume_at is not None
    left = job_type.resume_at - timezone.now()
    assert timedelta(minutes=29) < left < timedelta(minutes=31)
    assert said.out == (
        f"Job types paused until {job_type.resume_at:%Y-%m-%d %H:%M:%S}: "
        "tests.sample.add.\n"
    )


def test_a_pause_can_end_at_a_moment() -> None:
    jobqueue("pause", "mail", "--queue", "--until", "2096-01-02T03:04")
    assert Queue.objects.get().resume_at == datetime(2096, 1, 2, 3, 4, tzinfo=UTC)


def test_several_types_are_paused_and_resumed_at_once() -> None:
    names = ["tests.sample.say", "tests.sample.add", "tests.sample.say"]
    said = jobqueue("pause", *names, "--reason", "x")
    assert said.out == (
        "Job types paused until they are resumed: tests.sample.add, tests.sample.say.\n"
    )
    assert JobType.objects.filter(paused=True).count() == 2
    said = jobqueue("resume", *names)
    assert said.out == "Job types resumed: tests.sample.add, tests.sample.say.\n"
    assert not JobType.objects.filter(paused=True).exists()


def test_names_may_stand_around_options() -> None:
    jobqueue("pause", "tests.sample.add", "--reason", "x", "tests.sample.say")
    assert JobType.objects.filter(paused=True).count() == 2


def test_all_types_are_paused_or_none() -> None:
    message = refusal("pause", "tests.sample.add", "tests.sample.sya")
    assert message.startswith("There is no job type 'tests.sample.sya'. Did you mean")


def test_all_types_are_resumed_or_none() -> None:
    jobqueue("pause", "tests.sample.add")
    with pytest.raises(CommandError, match="There is no job type 'nothing.like.it'"):
        jobqueue("resume", "tests.sample.add", "nothing.like.it")
    assert JobType.objects.get(paused=True).name == "tests.sample.add"


@pytest.mark.parametrize("named_by", ["type", "job"])
def test_a_queue_that_nobody_names_is_paused_with_a_remark(named_by: str) -> None:
    if named_by == "type":
        JobType.objects.create(name="elsewhere.report", queue="reports")
    else:
        jobs.add.using(queue="reports", run_after=timedelta(hours=1)).enqueue(1)
    said = jobqueue("pause", "repotrs", "--queue")
    assert said.err == (
        "No job type, worker or job names the queue 'repotrs'. Did you mean "
        "'reports'?\n"
    )
    assert said.out == "Queues paused until they are resumed: repotrs.\n"
    assert Queue.objects.get(paused=True).name == "repotrs"


def test_a_queue_that_a_type_a_job_or_a_pause_names_needs_no_remark() -> None:
    jobs.add.using(queue="mail").enqueue(1)
    JobType.objects.create(name="elsewhere.report", queue="reports")
    for _ in range(2):
        assert jobqueue("pause", "mail", "reports", "--queue").err == ""
        Queue.objects.update(paused=False)


@pytest.mark.django_db(transaction=True)
def test_a_queue_that_a_worker_serves_needs_no_remark(make_worker: object) -> None:
    make_worker(queues=("night",))  # type: ignore[operator]
    assert jobqueue("pause", "night", "--queue").err == ""


def test_a_queue_that_was_never_paused_is_resumed_with_a_remark() -> None:
    said = jobqueue("resume", "mail", "--queue")
    assert (said.out, said.err) == ("", "The queue 'mail' was not paused.\n")


def test_it_can_be_quiet() -> None:
    said = jobqueue("pause", "nowhere", "--queue", verbosity=0)
    assert (said.out, said.err) == ("", "")
    assert Queue.objects.get(paused=True).name == "nowhere"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pause"], "the following arguments are required: NAME"),
        (["resume"], "the following arguments are required: NAME"),
        (["pause", "tests.sample.ad"], "There is no job type 'tests.sample.ad'. Did"),
        (["resume", "tests.sample.ad"], "There is no job type 'tests.sample.ad'. Did"),
        (["pause", "a,b", "--queue"], "The name of a queue must have no space, comma"),
        (["pause", "x" * 300, "--queue"], "The name of a queue must have at most"),
        (["resume", "", "--queue"], "The name of a queue must be a name, not ''."),
        (["pause", "tests.sample.add", "--for", "x"], "--for: 'x' is no duration."),
        (["pause", "tests.sample.add", "--until", "x"], "--until: 'x' is no time."),
        (
            ["pause", "tests.sample.add", "--until", "2026-01-02T03:04"],
            "--until: 2026-01-02 03:04:00 is past.",
        ),
        (
            ["pause", "tests.sample.add", "--until", "2096-01-02", "--for", "2h"],
            "argument --for: not allowed with argument --until",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_reason(
    arguments: list[str], message: str
) -> None:
    assert message in refusal(*arguments)


@pytest.mark.parametrize("queues", [False, True], ids=["job type", "queue"])
def test_a_pause_and_a_resume_say_what_they_found(queues: bool) -> None:
    one = "queue" if queues else "job type"
    names = ["mail"] if queues else ["tests.sample.add"]
    flags = ["--queue"] if queues else []
    said = jobqueue("resume", *names, *flags)
    assert (said.out, said.err) == ("", f"The {one} {names[0]!r} was not paused.\n")

    jobqueue("pause", *names, *flags, "--for", "1h")
    said = jobqueue("pause", *names, *flags)
    assert said.out.startswith(f"{one.capitalize()}s paused until they are resumed: ")
    assert f"Paused already; reason and end are replaced: {names[0]}.\n" in said.err

    said = jobqueue("resume", *names, *flags)
    assert (said.out, said.err) == (f"{one.capitalize()}s resumed: {names[0]}.\n", "")
    said = jobqueue("resume", *names, *flags)
    assert (said.out, said.err) == ("", f"The {one} {names[0]!r} was not paused.\n")


def test_programs_are_told_what_was_paused_and_resumed() -> None:
    jobqueue("pause", "tests.sample.keep")
    names = ("tests.sample.add", "tests.sample.keep")
    said = jobqueue("pause", *names, "--for", "1h", "--format", "json").json
    assert said["paused"] == [*names]
    assert said["replaced"] == ["tests.sample.keep"]
    assert datetime.fromisoformat(said["until"]) > timezone.now()
    jobqueue("resume", "tests.sample.add")
    said = jobqueue("resume", *names, "--format", "json").json
    assert said == {"resumed": [names[1]], "not_paused": [names[0]]}
