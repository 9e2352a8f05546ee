"""``jobqueue status`` for people."""

from __future__ import annotations

import io
import itertools
import json
import signal
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.utils import translation

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
    not_refused,
)
from tests.stats.rows import SAY, ago, host, queued, worker
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db

NO_WORKER = "No worker is alive. Start one with manage.py runworkers."


def section(title: str) -> list[str]:
    lines = iter(jobqueue("status").out.splitlines())
    for line in lines:
        if line.startswith(title):
            break
    else:
        raise AssertionError(f"there is no section {title!r}")
    return [" ".join(line.split()) for line in itertools.takewhile(bool, lines)]


def notices() -> list[str]:
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


def test_queues_show_what_waits_and_runs_by_job_type() -> None:
    at = worker()
    queued(queue="mail", status="running", worker_id=at.pk, attempts=1)
    queued(queue="mail", run_after=ago(hours=2))
    queued(queue="mail")
    queued(queue="mail", run_after=ago(hours=-1))
    queued(queue="mail", run_after=ago(hours=-1), attempts=1)
    queued(job_type_id=SAY, run_after=ago(hours=3, minutes=30))
    head, say, add = section("Queues")
    assert head == "Queue Job type Ready Later Retrying Running Oldest"
    assert say.startswith("default tests.sample.say 1 - - - 3 h 3")
    assert add.startswith("mail tests.sample.add 2 2 1 1 2 h")


@pytest.mark.dear
def test_a_depth_above_the_cap_is_not_counted() -> None:
    queued(10_001)
    (row,) = section("Queues")[1:]
    assert row.startswith("default tests.sample.add 10,000+ - - - ")
    assert notices()[0].startswith("No worker is alive, and 10,000+ jobs wait.")
    assert [depth_text(n) for n in (0, 10_000, 10_001)] == ["0", "10,000", "10,000+"]


def test_text_is_english_in_every_project_and_so_are_its_numbers() -> None:
    queued(1_200)
    with translation.override("de"):
        text = jobqueue("status").out
        (notice,) = jobqueue("status --format json").json["notices"]
    assert "No worker is alive, and 1,200 jobs wait." in text
    assert "default  tests.sample.add  1,200" in text
    assert "1.200 Jobs" in notice["message"]  # as before, in the project's language


def test_a_worker_is_shown_with_its_slots_lease_memory_and_queues() -> None:
    worker(
        "web-1:1",
        queues=["mail", "reports"],
        threads=3,
        async_slots=20,
        rss=48 * 2**20,
        running=2,
        lease_until=ago(minutes=-5),
    )
    worker("web-1:2")
    head, one, two = section("Workers")
    assert head == "Worker State Running Slots Lease Memory Age Queues"
    assert one.startswith("web-1:1 running 2 23 ")
    assert one.split()[4][0] in "45"  # minutes
    assert " 48 MB " in one
    assert one.endswith(" mail, reports")
    assert two.endswith(" every")
    assert notices() == []


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
    until = ago(days=-2, minutes=-30)
    operations.pause(["mail"], queues=True, by="ben", resume_at=until)
    operations.pause(["over"], queues=True, by="ben", resume_at=until)
    Queue.objects.filter(name="over").update(resume_at=ago(minutes=1))
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


def test_without_a_worker_the_jobs_that_are_due_are_told_with_it() -> None:
    queued(run_after=ago(days=-1))
    assert notices() == [NO_WORKER]
    queued()
    worker(lease_until=ago(seconds=1))
    assert section("Workers")[1].split()[1] == "lapsed"
    assert notices() == [
        "No worker is alive, and 1 job waits. Start one with manage.py runworkers."
    ]


def test_without_a_worker_hosts_that_operators_parked_or_drained_are_told() -> None:
    host("web-1:1", state="standby")
    assert notices() == [NO_WORKER]
    aside = "operators have parked or drained the hosts. See manage.py jobqueue hosts."
    for state in ("parked", "draining"):
        other = host(f"web-2:{state}", state=state)
        assert notices() == [f"No worker is alive: {aside}"]
        other.delete()
    host("web-2:2", state="parked")
    queued()
    assert notices() == [f"No worker is alive, and 1 job waits: {aside}"]
    Host.objects.update(lease_until=ago(seconds=1))
    assert notices() == [NO_WORKER.replace(".", ", and 1 job waits.", 1)]


def test_jobs_that_no_living_worker_would_claim_are_told() -> None:
    worker("web-1:1", queues=["mail"])
    queued(queue="mail")
    assert notices() == []
    queued(queue="night")
    JobType.objects.create(name="elsewhere.report")
    queued(3, queue="mail", job_type_id="elsewhere.report")
    worker("web-1:2", queues=["default"], job_types=[SAY])
    queued()
    assert set(notices()) == {
        "1 job waits in queue 'night', which no living worker serves.",
        "3 jobs wait of type 'elsewhere.report', which no running worker handles.",
        "1 job waits of type 'tests.sample.add' in queue 'default': no living worker "
        "both serves the queue and knows the type.",
    }


def test_draining_workers_claim_nothing_and_that_is_told() -> None:
    worker("web-1:1", queues=["mail"], state="draining")
    worker("web-1:2", queues=["default"])
    queued(queue="mail")
    assert notices() == [
        "1 job waits in queue 'mail', which no living worker serves, draining ones "
        "aside."
    ]
    Worker.objects.update(state="draining")
    assert notices() == ["All living workers are draining: no further job is claimed."]
    Worker.objects.filter(name="web-1:1").update(state="stopped")
    assert notices() == [
        "The only living worker is draining: no further job is claimed."
    ]


# The terminal.


@needs_rich
@pytest.mark.parametrize("width", [80, 120])
def test_on_a_terminal_no_line_is_longer_than_it_is_wide(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    name = "a_very_long_name_of_an_application.import_products_from_a_supplier"
    JobType.objects.create(name=name, queue="imports-of-the-night-" + "x" * 40)
    QueuedJob.objects.create(job_type_id=name, queue="imports-of-" + "x" * 40)
    worker(queues=[f"queue-{n}" for n in range(20)])
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


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_without_rich_it_looks_again_until_it_is_interrupted(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO]
) -> None:
    rests: list[float] = []

    def rest(seconds: float) -> None:
        rests.append(seconds)
        queued()
        if len(rests) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(status, "sleep", rest)
    monkeypatch.setattr(rich_output, "IS_INSTALLED", False)
    said = jobqueue("status --watch", stdout=stream())
    assert rests == [2, 2, 2]
    first, *others = said.out.split("Job queue in database")
    assert (first, len(others), said.err) == ("", 3, "")
    # A blank line ends each look, and on a terminal one follows the ^C.
    assert [text.endswith("\n\n") for text in others] == [True] * 3
    assert said.out.endswith("\n\n\n") == (stream is Terminal)
    assert "No worker is alive, and 2 jobs wait." in others[2]
    assert "\x1b" not in said.out


@needs_rich
def test_on_a_terminal_the_picture_takes_the_whole_screen_and_leaves_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(status, "sleep", _interrupt_second())
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "6")
    out = jobqueue("status --watch 0.5", stdout=Terminal()).out
    assert out.startswith("\x1b[?1049h")  # the other screen
    assert out.count("Job queue in database 'default'") >= 2
    _, _, after = out.partition("\x1b[?1049l")
    assert "Job queue" not in after
    pictures = out.split("\x1b[H")[1:]
    assert all(picture.count("\n") <= 6 for picture in pictures)


def test_on_a_terminal_an_outage_takes_the_place_of_the_picture(
    monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    def fail() -> None:
        raise OperationalError("connection refused:\n  is the server running?")

    monkeypatch.setattr(status, "sleep", _interrupt_second())
    monkeypatch.setattr(status, "read", fail)
    monkeypatch.setattr(status, "connections", {"default": connection.copy()})
    monkeypatch.setenv("COLUMNS", "100")
    said = jobqueue("status --watch", stdout=Terminal())
    shown, other = (said.out, said.err) if installed else (said.err, said.out)
    outage = "The database cannot be used, trying again: connection refused: is the"
    assert shown.count(outage) >= 2
    assert outage not in other


@pytest.mark.processes
def test_ctrl_c_ends_a_watch_in_good_order(manage: Manage) -> None:
    started = manage("jobqueue status --watch 0.1 --format json")
    eventually(lambda: started.said.out.count('{"time": ') > 1)
    started.process.send_signal(signal.SIGINT)
    assert (started.wait(), started.said.err) == (0, "")
    looks = [json.loads(line) for line in started.said.out.splitlines()]
    times = [look["time"] for look in looks]  # one line for each look
    assert times == sorted(set(times))


def test_what_makes_no_sense_is_refused_with_a_reason() -> None:
    reasons = {
        "--watch often": "--watch: 'often' is not a duration. Write 30s, 10m",
        "--watch 0": "--watch: must be at least 0.1 s.",
        "--format xml": "argument --format: invalid choice: 'xml'",
    }
    assert not_refused("status", reasons) == {}


def _interrupt_second() -> Callable[[float], None]:
    rounds: list[float] = []

    def rest(seconds: float) -> None:
        rounds.append(seconds)
        if len(rounds) == 2:
            raise KeyboardInterrupt

    return rest
