"""``jobqueue import django-q2``, on the table of the released package."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.core.management.base import CommandError
from django.utils import timezone

from django_jobqueue.domain.due_firings import Period
from django_jobqueue.domain.schedule_rules import firings, parse
from django_jobqueue.models import QueuedJob, Schedule
from tests.commands.conftest import Said, jobqueue

ADD = "tests.sample.add"
BERLIN = ZoneInfo("Europe/Berlin")
MORNING = datetime(2030, 1, 15, 9, 20, tzinfo=BERLIN)


def imported(*arguments: str) -> Said:
    """``jobqueue import django-q2 …``."""
    return jobqueue("import", "django-q2", *arguments)


class Table:
    """Makes rows by the model of the package."""

    def __init__(self, app: Any) -> None:
        self.model = app.get_model("Schedule")

    def row(self, schedule_type: str = "D", **fields: Any) -> Any:
        """A schedule that adds."""
        values = {"func": ADD, "args": "1", "next_run": MORNING, **fields}
        # Its save() needs croniter, which only those who use cron have.
        (made,) = self.model.objects.bulk_create(
            [self.model(schedule_type=schedule_type, **values)]
        )
        return made


@pytest.fixture
def table(q2: Any, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Table:
    """An empty one, in Berlin."""
    settings.Q_CLUSTER = {"time_zone": "Europe/Berlin"}
    conf = importlib.import_module("django_q.conf").Conf
    monkeypatch.setattr(conf, "TIME_ZONE", "Europe/Berlin")  # read once, at its import
    return Table(q2)


def schedule(name: str = ADD) -> Schedule:
    """The imported one."""
    return Schedule.objects.get(pk=name)


def refusal() -> str:
    """Why the row is refused, which must not write anything."""
    out = imported("--yes").out
    (line,) = [one for one in out.splitlines() if " is refused: " in one]
    assert not Schedule.objects.filter(origin="admin").exists()
    assert not QueuedJob.objects.exists()
    return line.partition(": ")[2]


@pytest.mark.parametrize(
    ("schedule_type", "text", "fields"),
    [
        ("I", f"every 300 since {MORNING.timestamp():.0f}", {"minutes": 5}),
        ("H", f"every 3600 since {MORNING.timestamp():.0f}", {}),
        ("D", "cron 20 9 * * *", {}),
        ("W", "cron 20 9 * * 2", {}),
        ("M", "cron 20 9 15 * *", {}),
        ("BM", "cron 20 9 15 1,3,5,7,9,11 *", {}),
        ("Q", "cron 20 9 15 1,4,7,10 *", {}),
        ("Y", "cron 20 9 15 1 *", {}),
        (
            "D",
            "cron 7 20 9 * * *",
            {"next_run": MORNING + timedelta(seconds=7)},
        ),
    ],
)
def test_each_type_fires_when_django_q2_would(
    table: Table, schedule_type: str, text: str, fields: dict[str, Any]
) -> None:
    row = table.row(schedule_type, **fields)
    imported("--yes")
    one = schedule()
    assert (one.rule, one.time_zone) == (text, "Europe/Berlin")
    moment = row.next_run.astimezone(UTC)
    rule = parse(one.rule, one.time_zone)
    ours = firings(rule, moment)
    for _ in range(400):  # more than a year of days, with both changes of the clocks
        moment = row.calculate_next_run(moment)
        assert next(ours) == moment
    period = Period(starts_at=one.starts_at, ends_at=one.ends_at)
    assert period.next_after(rule, timezone.now()) == row.next_run


@pytest.mark.parametrize(
    "schedule_type", ["I", "H", "D", "W", "BW", "M", "BM", "Q", "Y"]
)
def test_the_first_run_is_theirs_whatever_its_microseconds(
    table: Table, schedule_type: str
) -> None:
    minutes = {"minutes": 90} if schedule_type == "I" else {}
    utc_noon = datetime(2030, 1, 15, 12, 0, 7, 614403, tzinfo=UTC)
    table.row(schedule_type, next_run=utc_noon, **minutes)
    imported("--yes")
    made = Schedule.objects.filter(origin="admin")
    if schedule_type == "BW":  # refused: clocks change
        assert not made.exists()
        return
    one = made.get()
    period = Period(starts_at=one.starts_at, ends_at=one.ends_at)
    first = period.next_after(parse(one.rule, one.time_zone), timezone.now())
    assert first == utc_noon.replace(microsecond=0)


def test_a_cron_row_becomes_a_cron_rule(table: Table) -> None:
    table.row("C", cron="*/15 6-9 * * 1-5")
    imported("--yes")
    assert schedule().rule == "cron */15 6-9 * * 1-5"


def test_the_sixth_field_of_their_cron_is_seconds(table: Table) -> None:
    table.row("C", cron="30 2 * * * 15")
    imported("--yes")
    assert schedule().rule == "cron 15 30 2 * * *"


def test_every_second_week_is_a_rule_where_clocks_do_not_change(
    table: Table, settings: Any
) -> None:
    settings.Q_CLUSTER = {"time_zone": "Asia/Tokyo"}
    table.row("BW")
    imported("--yes")
    assert schedule().rule == f"every 1209600 since {MORNING.timestamp():.0f}"


@pytest.mark.parametrize(
    ("schedule_type", "fields", "reason"),
    [
        ("BW", {}, "every second week at the same local time"),
        ("M", {"next_run": MORNING.replace(day=31)}, "It began on day 31"),
        ("C", {"cron": "0 3 */2 * 1"}, "either the day of month or the day of week"),
        ("C", {"cron": "0 3"}, "has 2 fields"),
        ("D", {"next_run": None}, "It has no next run."),
        ("D", {"repeats": 0}, "no more repeats"),
        ("D", {"repeats": 20_000}, "It repeats 20,000 times more"),
        ("D", {"args": "open('/etc/passwd')"}, "Its args are not only literals."),
        ("D", {"args": "1", "kwargs": "b=print(1)"}, "kwargs are not only literals."),
        ("D", {"args": "1", "kwargs": "b="}, "Its kwargs cannot be read."),
        ("D", {"args": "1", "kwargs": "{1: 2}"}, "Its kwargs are no keyword argument"),
        ("D", {"args": "1", "kwargs": "c=2"}, "has no parameter 'c'"),
        ("D", {"args": "(1, 2, 3)"}, "at most 2 positional arguments"),
        ("D", {"args": "{1, 2},", "func": "tests.sample.keep"}, "is a set"),
        ("D", {"func": "shop.unheard_of"}, "say --map shop.unheard_of=…"),
        ("O", {"next_run": datetime(2020, 1, 1, tzinfo=UTC)}, "Its moment is over."),
    ],
)
def test_what_cannot_be_said_here_is_refused_with_its_reason(
    table: Table, schedule_type: str, fields: dict[str, Any], reason: str
) -> None:
    table.row(schedule_type, **fields)
    assert reason in refusal()


@pytest.mark.parametrize(
    ("args", "kwargs", "data"),
    [
        ("1", None, {"a": 1}),
        ("1, 2", None, {"a": 1, "b": 2}),
        ("(1,)", "b=2", {"a": 1, "b": 2}),
        (None, "a=1, b=-2", {"a": 1, "b": -2}),
        ("", "{'a': 1}", {"a": 1}),
    ],
)
def test_arguments_are_read_as_literals(
    table: Table, args: str | None, kwargs: str | None, data: dict[str, Any]
) -> None:
    table.row(args=args, kwargs=kwargs)
    imported("--yes")
    assert schedule().data == data


def test_nothing_in_a_row_is_evaluated(table: Table, tmp_path: Any) -> None:
    file = tmp_path / "made"
    table.row(args=f"open({str(file)!r}, 'w')", name="first")
    table.row(kwargs=f"b=open({str(file)!r}, 'w')", name="second")
    out = imported("--yes").out
    assert out.count("not only literals") == 2
    assert not file.exists()


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


def test_repeats_become_an_end(table: Table) -> None:
    table.row(repeats=3)
    imported("--yes")
    assert schedule().ends_at == MORNING + timedelta(days=2)


def test_a_row_whose_next_run_is_over_begins_at_once(table: Table) -> None:
    table.row(next_run=timezone.now() - timedelta(days=400))
    imported("--yes")
    assert schedule().starts_at is None


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
    out = imported("--yes", "--disable-there").out
    assert out.endswith("1 schedule was made. 1 was turned off in Django-Q2.\n")
    good.refresh_from_db()
    bad.refresh_from_db()
    assert (good.repeats, bad.repeats) == (0, -1)
    again = imported("--yes", "--disable-there").out
    assert again.endswith("There is nothing to import.\n")


def test_a_missing_table_is_explained(db: None) -> None:
    with pytest.raises(CommandError, match="There is no table django_q_schedule"):
        imported()
