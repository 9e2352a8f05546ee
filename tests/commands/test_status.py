"""``jobqueue status`` for people."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core.management.base import CommandError
from django.db import OperationalError, connection
from django.utils import timezone, translation

from django_jobqueue import operations
from django_jobqueue.management.jobqueue import rich_output, status
from django_jobqueue.models import Host, JobType, Queue, QueuedJob, Worker
from django_jobqueue.stats.unclaimed_jobs import depth_text
from django_jobqueue.store import rollup
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.rollup import Count
from tests.commands.conftest import (
    Manage,
    Terminal,
    jobqueue,
    make_archived,
    needs_rich,
)
from tests.sample import jobs
from tests.stats.rows import host
from tests.support.hand_driven import HandDriven

pytestmark = pytest.mark.django_db

MakeWorker = Callable[..., HandDriven]
NO_WORKER = "No worker is alive. Start one with manage.py runworkers."


def section(title: str) -> list[str]:
    """The lines below this title, each space once."""
    lines = iter(jobqueue("status").out.splitlines())
    for line in lines:
        if line.startswith(title):
            break
    else:
        raise AssertionError(f"there is no section {title!r}")
    return [" ".join(line.split()) for line in itertools.takewhile(bool, lines)]


def notices() -> list[str]:
    """What it says is wrong."""
    _, _, rest = jobqueue("status").out.partition("\n\n")
    above, _, _ = rest.partition("Queues")
    return above.strip().splitlines()


def test_an_empty_job_queue_is_shown_as_such() -> None:
    lines = jobqueue("status").out.splitlines()
    assert lines[0].startswith("Job queue in database 'default', 20")
    assert lines[1:] == [
        "",
        NO_WORKER,
        "",
        "Queues: nothing waits, nothing runs.",
        "",
        "Workers: none.",
        "",
        "The last hour: no attempt ended.",
        "",
        "Jobs that failed for good in the last hour: none.",
    ]


@pytest.mark.django_db(transaction=True)
def test_queues_show_what_waits_and_runs_by_job_type(worker: HandDriven) -> None:
    jobs.add.using(queue="mail").enqueue(1)
    worker.claim()
    jobs.add.using(queue="mail").enqueue_many([{"a": 1}] * 2)
    jobs.add.using(queue="mail", run_after=timedelta(hours=1)).enqueue(1)
    retried = jobs.add.using(queue="mail", run_after=timedelta(hours=1)).enqueue(1)
    QueuedJob.objects.filter(id=retried.id).update(attempts=1)
    jobs.say.enqueue("fail")
    due = QueuedJob.objects.filter(status="queued", run_after__lte=_in())
    due.filter(queue="default").update(run_after=_in(hours=-3, minutes=-30))
    due.filter(queue="mail").update(run_after=_in(hours=-2))
    head, say, add = section("Queues")
    assert head == "Queue Job type Ready Later Retrying Running Oldest"
    assert say.startswith("default tests.sample.say 1 - - - 3 h 3")
    assert add.startswith("mail tests.sample.add 2 2 1 1 2 h")
    worker.run()


def test_without_a_worker_only_jobs_that_are_due_count_as_waiting() -> None:
    jobs.add.using(run_after=timedelta(days=1)).enqueue(1)
    assert notices()[0] == NO_WORKER
    jobs.add.enqueue(1)
    assert notices()[0].startswith("No worker is alive, and 1 job waits.")


def test_a_depth_above_the_cap_is_not_counted() -> None:
    jobs.add.enqueue_many([{"a": 1}] * 10_001)
    (row,) = section("Queues")[1:]
    assert row.startswith("default tests.sample.add 10,000+ - - - ")
    assert notices()[0].startswith("No worker is alive, and 10,000+ jobs wait.")
    assert [depth_text(n) for n in (0, 10_000, 10_001)] == ["0", "10,000", "10,000+"]


def test_text_is_english_in_every_project_and_so_are_its_numbers() -> None:
    jobs.add.enqueue_many([{"a": 1}] * 1_200)
    with translation.override("de"):
        text = jobqueue("status").out
        (notice,) = jobqueue("status", "--format", "json").json["notices"]
    assert "No worker is alive, and 1,200 jobs wait." in text
    assert "default  tests.sample.add  1,200" in text
    assert "1.200 Jobs" in notice["message"]  # as before, in the project's language


@pytest.mark.django_db(transaction=True)
def test_a_worker_is_shown_with_its_slots_lease_memory_and_queues(
    make_worker: MakeWorker,
) -> None:
    worker = make_worker(queues=("mail", "reports"), threads=3, async_slots=20).worker
    Worker.objects.update(rss=48 * 2**20, running=2, lease_until=_in(minutes=5))
    head, row = section("Workers")
    assert head == "Worker State Running Slots Lease Memory Age Queues"
    assert row.startswith(f"{worker.name} running 2 23 ")
    assert row.split()[4][0] in "45"  # minutes
    assert " 48 MB " in row
    assert row.endswith(" mail, reports")
    assert notices() == []


@pytest.mark.django_db(transaction=True)
def test_a_worker_of_every_queue_says_so(worker: HandDriven) -> None:
    assert section("Workers")[1].endswith(" every")
    assert notices() == []


@pytest.mark.django_db(transaction=True)
def test_workers_that_ended_lately_are_shown_with_their_end(
    worker: HandDriven,
) -> None:
    Worker.objects.update(state="lost", stopped_at=_in(), end="its lease lapsed")
    title = "Workers that ended in the last 10 minutes"
    assert section(title)[1] == f"{worker.worker.name} lost its lease lapsed"
    assert notices() == [NO_WORKER]
    Worker.objects.update(stopped_at=_in(minutes=-11))
    assert title not in jobqueue("status").out


def test_of_many_workers_that_ended_only_the_newest_are_shown() -> None:
    Worker.objects.bulk_create(
        Worker(name=f"web:{n}", host="web", pid=n, state="stopped", stopped_at=_in())
        for n in range(1, 16)
    )
    title = "Workers that ended in the last 10 minutes (the newest 10 of 15)"
    assert [row.split()[0] for row in section(title)[1:]] == [
        f"web:{n}" for n in range(15, 5, -1)
    ]


def test_the_last_hour_comes_from_the_roll_ups() -> None:
    mail = Count("tests.sample.add", "mail", succeeded=7, failed=1, retried=2)
    for _ in range(10):
        mail.attempt(ran=0.039, waited=0.9)
    night = Count("tests.sample.say", "night", succeeded=1_000)
    night.attempt(ran=6.0, waited=0.0)
    rollup.add(DjangoDatabase(), [mail, night])
    assert section("The last hour") == [
        "Queue Job type Succeeded Failed Retried Wait p95 Run p50 Run p95",
        "mail tests.sample.add 7 1 2 1.0 s 40 ms 40 ms",
        "night tests.sample.say 1,000 0 0 1 ms 6.3 s 6.3 s",
        "all 1,007 1 2 1.0 s 40 ms 6.3 s",
    ]


def test_failures_are_grouped_by_exception_and_type() -> None:
    make_archived(2, error_class="shop.Gone", error_message="no\nsuch \x1b[1morder")
    make_archived(error_class="shop.Gone", job_type_id="tests.sample.say")
    make_archived(error_class="KeyError", ago=timedelta(hours=2))
    make_archived(status="expired")
    title = "Jobs that failed for good in the last hour"
    head, first, second = section(title)
    assert head == "Jobs Exception Job type Last ago Message"
    assert first.startswith("2 shop.Gone tests.sample.add 5 m")
    assert first.endswith(" no such \\x1b[1morder")
    assert second.startswith("1 shop.Gone tests.sample.say 5 m")


def test_pauses_are_shown_with_who_why_and_how_long() -> None:
    operations.pause(["tests.sample.add"], by="anna", reason="mail is down")
    operations.pause(["mail"], queues=True, by="ben", resume_at=_in(days=2, minutes=30))
    operations.pause(["over"], queues=True, by="ben", resume_at=_in(minutes=1))
    Queue.objects.filter(name="over").update(resume_at=_in(minutes=-1))
    JobType.objects.filter(name="tests.sample.say").update(concurrency_override=0)
    JobType.objects.filter(name="tests.sample.look").update(concurrency=0)
    assert section("Paused") == [
        "What Name Ends in By Reason",
        "job type tests.sample.add - anna mail is down",
        "queue mail 2 d 0 h ben -",
        "job type tests.sample.look - - its concurrency is 0",
        "job type tests.sample.say - - its concurrency is 0",
    ]


# What nobody will claim.


def test_waiting_jobs_and_no_worker_are_told_together() -> None:
    jobs.add.enqueue(1)
    jobs.add.enqueue(2)
    jobs.add.using(run_after=timedelta(hours=1)).enqueue(1)
    assert notices() == [
        "No worker is alive, and 2 jobs wait. Start one with manage.py runworkers."
    ]


@pytest.mark.parametrize("state", ["parked", "draining"])
def test_without_a_worker_hosts_that_operators_parked_or_drained_are_told(
    state: str,
) -> None:
    host("web-1:1", state="standby")
    assert notices() == [NO_WORKER]
    host("web-2:2", state=state)
    assert notices() == [
        "No worker is alive: operators have parked or drained the hosts. "
        "See manage.py jobqueue hosts."
    ]
    jobs.add.enqueue(1)
    assert notices() == [
        "No worker is alive, and 1 job waits: operators have parked or drained the "
        "hosts. See manage.py jobqueue hosts."
    ]
    Host.objects.update(lease_until=_in(seconds=-1))
    assert notices() == [f"{NO_WORKER}".replace(".", ", and 1 job waits.", 1)]


@pytest.mark.django_db(transaction=True)
def test_a_worker_whose_lease_lapsed_does_not_count_as_alive(
    worker: HandDriven,
) -> None:
    Worker.objects.update(lease_until=_in(seconds=-1))
    assert notices() == [NO_WORKER]
    assert section("Workers")[1].split()[1] == "lapsed"


@pytest.mark.django_db(transaction=True)
def test_a_queue_that_no_living_worker_serves_is_told(make_worker: MakeWorker) -> None:
    make_worker(queues=("mail",))
    jobs.add.using(queue="mail").enqueue(1)
    assert notices() == []
    jobs.add.using(queue="night").enqueue(1)
    assert notices() == ["1 job waits in queue 'night', which no living worker serves."]


@pytest.mark.django_db(transaction=True)
def test_a_type_that_no_living_worker_knows_is_told(worker: HandDriven) -> None:
    JobType.objects.create(name="elsewhere.report")
    QueuedJob.objects.bulk_create(
        QueuedJob(job_type_id="elsewhere.report") for _ in range(3)
    )
    assert notices() == [
        "3 jobs wait of type 'elsewhere.report', which no running worker handles."
    ]


@pytest.mark.django_db(transaction=True)
def test_a_queue_and_a_type_must_be_known_to_the_same_worker(
    make_worker: MakeWorker,
) -> None:
    ids = [make_worker(queues=(queue,)).worker.id for queue in ("mail", "default")]
    Worker.objects.filter(id=ids[1]).update(job_types=["tests.sample.say"])
    jobs.add.enqueue(1)
    assert notices() == [
        "1 job waits of type 'tests.sample.add' in queue 'default': no living worker "
        "both serves the queue and knows the type."
    ]


@pytest.mark.django_db(transaction=True)
def test_draining_workers_claim_nothing_and_that_is_told(
    make_worker: MakeWorker,
) -> None:
    ids = [make_worker(queues=(queue,)).worker.id for queue in ("mail", "default")]
    jobs.add.using(queue="mail").enqueue(1)
    Worker.objects.filter(id=ids[0]).update(state="draining")
    assert notices() == [
        "1 job waits in queue 'mail', which no living worker serves, draining ones "
        "aside."
    ]
    Worker.objects.filter(id=ids[1]).update(state="draining")
    assert notices() == ["All living workers are draining: no further job is claimed."]
    Worker.objects.filter(id=ids[0]).update(state="stopped")
    assert notices() == [
        "The only living worker is draining: no further job is claimed."
    ]


# The terminal.


@needs_rich
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("width", [80, 120])
def test_on_a_terminal_no_line_is_longer_than_it_is_wide(
    make_worker: MakeWorker, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    name = "a_very_long_name_of_an_application.import_products_from_a_supplier"
    JobType.objects.create(name=name, queue="imports-of-the-night-" + "x" * 40)
    QueuedJob.objects.create(job_type_id=name, queue="imports-of-" + "x" * 40)
    make_worker(queues=tuple(f"queue-{n}" for n in range(20)))
    make_archived(
        job_type_id=name, error_class=f"{name}.Error", error_message="x" * 200
    )
    rollup.add(DjangoDatabase(), [Count(name, "imports-of-" + "x" * 40, succeeded=9)])
    operations.pause([name], by="anna " * 20, reason="because " * 40)
    monkeypatch.setenv("COLUMNS", str(width))
    lines = jobqueue("status", stdout=Terminal()).out.splitlines()
    assert max(map(len, lines)) <= width
    assert any("a_very_l…" in line or "a_very_long" in line for line in lines)
    for title in ("Oldest", "Queues", "p95", "Message", "Reason"):
        assert any(line.rstrip().endswith(title) for line in lines), title


def test_in_a_file_nothing_is_cut() -> None:
    make_archived(error_class="KeyError", error_message="x" * 300)
    assert "x" * 300 in jobqueue("status").out


# Again and again.


def test_it_looks_again_until_it_is_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rests: list[float] = []

    def rest(seconds: float) -> None:
        rests.append(seconds)
        jobs.add.enqueue(1)
        if len(rests) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(status, "sleep", rest)
    said = jobqueue("status", "--watch")
    assert rests == [2, 2, 2]
    assert said.out.count("Job queue in database") == 3
    assert "No worker is alive, and 2 jobs wait." in said.out
    assert "\x1b" not in said.out


@needs_rich
def test_on_a_terminal_the_picture_takes_the_whole_screen_and_leaves_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(status, "sleep", _interrupt_second())
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "6")
    out = jobqueue("status", "--watch", "0.5", stdout=Terminal()).out
    assert out.startswith("\x1b[?1049h")  # the other screen
    assert out.count("Job queue in database 'default'") >= 2
    _, _, after = out.partition("\x1b[?1049l")
    assert "Job queue" not in after
    pictures = out.split("\x1b[H")[1:]
    assert all(picture.count("\n") <= 6 for picture in pictures)


def test_without_rich_a_terminal_gets_one_picture_below_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rich_output, "IS_INSTALLED", False)
    monkeypatch.setattr(status, "sleep", _interrupt_second())
    out = jobqueue("status", "--watch", "0.5", stdout=Terminal()).out
    assert out.count("Job queue in database 'default'") == 2
    assert "\x1b" not in out


def test_on_a_terminal_an_outage_takes_the_place_of_the_picture(
    monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    def fail() -> None:
        raise OperationalError("connection refused:\n  is the server running?")

    monkeypatch.setattr(status, "sleep", _interrupt_second())
    monkeypatch.setattr(status, "read", fail)
    monkeypatch.setattr(status, "connections", {"default": connection.copy()})
    monkeypatch.setenv("COLUMNS", "100")
    said = jobqueue("status", "--watch", stdout=Terminal())
    shown, other = (said.out, said.err) if installed else (said.err, said.out)
    outage = "The database cannot be used, trying again: connection refused: is the"
    assert shown.count(outage) >= 2
    assert outage not in other


def test_while_the_database_is_away_it_says_so_and_looks_again(
    manage: Manage,
) -> None:
    process = manage(
        *("jobqueue", "status", "--watch", "0.1", "--format", "json"),
        DATABASE_URL="postgresql://x@127.0.0.1:1/none",
    )
    assert process.stderr is not None
    for _ in range(2):
        line = process.stderr.readline()
        assert line.startswith("The database cannot be used, trying again: ")
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0


@pytest.mark.django_db(transaction=True)
def test_ctrl_c_ends_a_watch_in_good_order(manage: Manage) -> None:
    process = manage("jobqueue", "status", "--watch", "0.1")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Job queue in database")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--watch", "often"], "--watch: 'often' is no duration. Write 30s, 10m"),
        (["--watch", "0"], "--watch: must be at least 0.1 s."),
        (["--format", "xml"], "argument --format: invalid choice: 'xml'"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_reason(
    arguments: list[str], message: str
) -> None:
    with pytest.raises(CommandError) as refused:
        jobqueue("status", *arguments)
    assert message in str(refused.value)


def _in(**length: float) -> object:
    return timezone.now() + timedelta(**length)


def _interrupt_second() -> Callable[[float], None]:
    rounds: list[float] = []

    def rest(seconds: float) -> None:
        rounds.append(seconds)
        if len(rounds) == 2:
            raise KeyboardInterrupt

    return rest
