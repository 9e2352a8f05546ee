"""``jobqueue import django-q2``, on the table of the released package."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from django_jobqueue.contrib.schedules.models import Schedule
from django_jobqueue.domain.schedule_rules import firings, parse
from django_jobqueue.domain.schedules import Period
from django_jobqueue.models import QueuedJob
from tests.commands.conftest import Said, jobqueue

ADD = "tests.sample.add"
BERLIN = ZoneInfo("Europe/Berlin")
MORNING = datetime(2030, 1, 15, 9, 20, tzinfo=BERLIN)


def imported(line: str = "") -> Said:
    return jobqueue(f"import django-q2 {line}")


class Table:
    """Makes rows by the model of the package."""

    def __init__(self, app: Any) -> None:
        self.model = app.get_model("Schedule")

    def row(self, schedule_type: str = "D", **fields: Any) -> Any:
        values = {"func": ADD, "args": "1", "next_run": MORNING, **fields}
        # Its save() needs croniter, which only those who use cron have.
        (made,) = self.model.objects.bulk_create(
            [self.model(schedule_type=schedule_type, **values)]
        )
        return made


@pytest.fixture
def table(q2: Any, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Table:
    settings.Q_CLUSTER = {"time_zone": "Europe/Berlin"}
    conf = importlib.import_module("django_q.conf").Conf
    monkeypatch.setattr(conf, "TIME_ZONE", "Europe/Berlin")  # read once, at its import
    return Table(q2)


def schedule(name: str = ADD) -> Schedule:
    return Schedule.objects.get(pk=name)


def test_each_type_fires_when_django_q2_would(table: Table) -> None:
    since = f"{MORNING.timestamp():.0f}"
    cases: dict[str, tuple[str, dict[str, Any]]] = {
        f"every 300 since {since}": ("I", {"minutes": 5}),
        f"every 3600 since {since}": ("H", {}),
        "cron 20 9 * * *": ("D", {}),
        "cron 20 9 * * 2": ("W", {}),
        "cron 20 9 15 * *": ("M", {}),
        "cron 20 9 15 1,3,5,7,9,11 *": ("BM", {}),
        "cron 20 9 15 1,4,7,10 *": ("Q", {}),
        "cron 20 9 15 1 *": ("Y", {}),
        "cron 7 20 9 * * *": ("D", {"next_run": MORNING + timedelta(seconds=7)}),
    }
    rows = {
        text: table.row(type, name=f"{n}", **fields)
        for n, (text, (type, fields)) in enumerate(cases.items())
    }
    imported("--yes")
    for text, row in rows.items():
        one = schedule(row.name)
        assert (one.rule, one.time_zone) == (text, "Europe/Berlin")
        moment = row.next_run.astimezone(UTC)
        rule = parse(one.rule, one.time_zone)
        ours = firings(rule, moment)
        # More than a year of days, with both changes of the clocks; ten of years.
        for _ in range(400 if row.schedule_type in ("D", "W") else 20):
            moment = row.calculate_next_run(moment)
            assert next(ours) == moment, text
        period = Period(starts_at=one.starts_at, ends_at=one.ends_at)
        assert period.next_after(rule, timezone.now()) == row.next_run


def test_cron_rows_and_weeks_where_clocks_do_not_change_become_rules(
    table: Table, settings: Any
) -> None:
    settings.Q_CLUSTER = {"time_zone": "Asia/Tokyo"}
    table.row("C", name="five", cron="*/15 6-9 * * 1-5")
    table.row("C", name="six", cron="30 2 * * * 15")  # their sixth field is seconds
    table.row("BW", name="weeks")
    imported("--yes")
    assert schedule("five").rule == "cron */15 6-9 * * 1-5"
    assert schedule("six").rule == "cron 15 30 2 * * *"
    assert schedule("weeks").rule == f"every 1209600 since {MORNING.timestamp():.0f}"


def test_the_first_run_is_theirs_whatever_its_microseconds(table: Table) -> None:
    utc_noon = datetime(2030, 1, 15, 12, 0, 7, 614403, tzinfo=UTC)
    types = ["I", "H", "D", "W", "BW", "M", "BM", "Q", "Y"]
    for each in types:
        minutes = {"minutes": 90} if each == "I" else {}
        table.row(each, name=each, next_run=utc_noon, **minutes)
    imported("--yes")
    made = Schedule.objects.filter(origin="admin")
    firsts = {}
    for one in made:
        period = Period(starts_at=one.starts_at, ends_at=one.ends_at)
        rule = parse(one.rule, one.time_zone)
        firsts[one.name] = period.next_after(rule, timezone.now())
    wanted = dict.fromkeys(types, utc_noon.replace(microsecond=0))
    del wanted["BW"]  # refused: clocks change
    assert firsts == wanted


REFUSED: list[tuple[str, str, dict[str, Any]]] = [
    ("every second week at the same local time", "BW", {}),
    ("It began on day 31", "M", {"next_run": MORNING.replace(day=31)}),
    ("either the day of month or the day of week", "C", {"cron": "0 3 */2 * 1"}),
    ("has 2 fields", "C", {"cron": "0 3"}),
    ("It has no next run.", "D", {"next_run": None}),
    ("no more repeats", "D", {"repeats": 0}),
    ("It repeats 20,000 times more", "D", {"repeats": 20_000}),
    ("Its args are not only literals.", "D", {"args": "open('/etc/passwd')"}),
    ("kwargs are not only literals.", "D", {"args": "1", "kwargs": "b=print(1)"}),
    ("Its kwargs cannot be read.", "D", {"args": "1", "kwargs": "b="}),
    ("Its kwargs are no keyword argument", "D", {"args": "1", "kwargs": "{1: 2}"}),
    ("has no parameter 'c'", "D", {"args": "1", "kwargs": "c=2"}),
    ("at most 2 positional arguments", "D", {"args": "(1, 2, 3)"}),
    ("is a set", "D", {"args": "{1, 2},", "func": "tests.sample.keep"}),
    ("say --map shop.unheard_of=…", "D", {"func": "shop.unheard_of"}),
    ("Its moment is over.", "O", {"next_run": datetime(2020, 1, 1, tzinfo=UTC)}),
]


def test_what_cannot_be_said_here_is_refused_with_its_reason(
    table: Table, tmp_path: Path
) -> None:
    file = tmp_path / "made"
    evil = f"open({str(file)!r}, 'w')"
    refused = [
        *REFUSED,
        ("not only literals", "D", {"args": evil}),
        ("not only literals", "D", {"kwargs": f"b={evil}"}),
    ]
    for number, (_, type, fields) in enumerate(refused):
        table.row(type, name=f"r{number}", **fields)
    lines = imported("--yes").out.splitlines()
    told = dict(
        line.split(" is refused: ") for line in lines if " is refused: " in line
    )
    reasons = {f"r{number}": reason for number, (reason, *_) in enumerate(refused)}
    wrong = {n: told.get(n) for n, r in reasons.items() if r not in told.get(n, "")}
    assert (wrong, told.keys()) == ({}, reasons.keys())
    assert not Schedule.objects.filter(origin="admin").exists()
    assert not QueuedJob.objects.exists()
    assert not file.exists()  # nothing in a row is evaluated


def test_arguments_are_read_as_literals(table: Table) -> None:
    cases = [
        ("1", None, {"a": 1}),
        ("1, 2", None, {"a": 1, "b": 2}),
        ("(1,)", "b=2", {"a": 1, "b": 2}),
        (None, "a=1, b=-2", {"a": 1, "b": -2}),
        ("", "{'a': 1}", {"a": 1}),
    ]
    for number, (args, kwargs, _) in enumerate(cases):
        table.row(args=args, kwargs=kwargs, name=f"{number}")
    imported("--yes")
    for number, (*_, data) in enumerate(cases):
        assert schedule(f"{number}").data == data


def test_a_row_that_runs_once_becomes_one_job(table: Table) -> None:
    table.row("O", cluster="mail")
    imported("--yes")
    (job,) = QueuedJob.objects.all()
    assert (job.job_type_id, job.run_after, job.queue) == (ADD, MORNING, "mail")
    assert imported("--yes").out.endswith("There is nothing to import.\n")
    assert QueuedJob.objects.count() == 1


def test_a_cluster_is_a_queue_unless_it_is_the_only_one(
    table: Table, settings: Any
) -> None:
    settings.Q_CLUSTER = {"name": "mysite"}
    table.row(name="here", cluster="mysite")
    table.row(name="mail", cluster="mail")
    imported("--yes")
    assert schedule("here").options == {}
    assert schedule("mail").options == {"queue": "mail"}


def test_repeats_become_an_end_and_what_is_over_begins_at_once(table: Table) -> None:
    table.row(repeats=3)
    table.row(name="over", next_run=timezone.now() - timedelta(days=400))
    imported("--yes")
    assert schedule().ends_at == MORNING + timedelta(days=2)
    assert schedule("over").starts_at is None


def test_what_means_nothing_here_is_named_and_left(table: Table) -> None:
    table.row(
        hook="shop.hooks.done",
        intended_date_kwarg="day",
        kwargs="q_options={'timeout': 60}",
    )
    out = imported("--yes").out
    assert "Its hook shop.hooks.done is left: write on_complete=…." in out
    assert "Its intended_date_kwarg 'day' is left" in out
    assert "timeout of its q_options is left: write @job(timeout=…)." in out
    assert schedule().data == {"a": 1}


def test_rows_of_one_name_become_schedules_of_their_own(table: Table) -> None:
    first, second = table.row(name="sums"), table.row("H", name="sums")
    imported("--yes")
    assert schedule("sums").rule == "cron 20 9 * * *"
    assert schedule(f"sums-{second.pk}").rule.startswith("every 3600")
    assert imported("--yes").out.endswith("There is nothing to import.\n")
    assert first.pk < second.pk


def test_theirs_repeat_no_more_after_an_import(table: Table) -> None:
    good, bad = table.row(), table.row(func="unheard_of")
    dry = imported("--disable-there").out
    assert "1 would be turned off in Django-Q2." in dry
    out = imported("--yes --disable-there").out
    assert out.endswith("1 schedule was made. 1 was turned off in Django-Q2.\n")
    good.refresh_from_db()
    bad.refresh_from_db()
    assert (good.repeats, bad.repeats) == (0, -1)
    again = imported("--yes --disable-there").out
    assert again.endswith("There is nothing to import.\n")
