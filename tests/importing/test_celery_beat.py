"""``jobqueue import celery-beat``, on the tables of the released package."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management.base import CommandError
from django.db import transaction
from django.utils import timezone

from django_jobqueue import operations, testing
from django_jobqueue.domain.registry import handler_names
from django_jobqueue.models import QueuedJob, Schedule
from tests.commands.conftest import Said, jobqueue

NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)
ADD, KEEP = "tests.sample.add", "tests.sample.keep"


def imported(*arguments: str) -> Said:
    """``jobqueue import celery-beat …``."""
    return jobqueue("import", "celery-beat", *arguments)


class Tables:
    """Makes rows by the models of the package."""

    def __init__(self, app: Any) -> None:
        self.model = app.get_model

    def crontab(self, name: str = "nightly", **fields: Any) -> Any:
        """A periodic task at 2:30, or at what these fields say."""
        names = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")
        own = {key: fields.pop(key) for key in (*names, "timezone") if key in fields}
        crontab = self.model("CrontabSchedule").objects.create(
            **{"minute": "30", "hour": "2", **own}
        )
        return self.periodic(name, crontab=crontab, **fields)

    def interval(self, every: int, period: str, **fields: Any) -> Any:
        """A periodic task at this distance."""
        model = self.model("IntervalSchedule")
        interval = model.objects.create(every=every, period=period)
        return self.periodic("often", interval=interval, **fields)

    def clocked(self, moment: datetime, **fields: Any) -> Any:
        """A periodic task at this moment."""
        clocked = self.model("ClockedSchedule").objects.create(clocked_time=moment)
        return self.periodic("once", clocked=clocked, one_off=True, **fields)

    def periodic(self, name: str, **fields: Any) -> Any:
        """A periodic task that adds."""
        fields = {"task": "tests.sample.add", "kwargs": '{"a": 1}', **fields}
        return self.model("PeriodicTask").objects.create(name=name, **fields)


@pytest.fixture
def tables(beat: Any) -> Tables:
    """Empty ones."""
    return Tables(beat)


def ours() -> Any:
    """The schedules that no code declares."""
    return Schedule.objects.filter(origin="admin")


def schedule(name: str = "nightly") -> Schedule:
    """The imported one."""
    return Schedule.objects.get(pk=name)


def refusal(name: str = "nightly") -> str:
    """Why this one is refused, which must not write anything."""
    out = imported("--yes").out
    (line,) = [one for one in out.splitlines() if one.startswith(f"{name} is refused")]
    assert not Schedule.objects.filter(pk=name).exists()
    assert not QueuedJob.objects.exists()
    return line.partition(": ")[2]


def test_a_crontab_is_shown_and_nothing_written(tables: Tables) -> None:
    tables.crontab(timezone="Europe/Berlin")
    out = imported().out
    assert "30 2 * * * (Europe/Berlin)  schedule" in out
    assert out.endswith("1 schedule would be made. Nothing was changed; say --yes.\n")
    assert "1 schedule would be made." in imported("--yes", "--dry-run").out
    assert not ours().exists()


def test_a_crontab_becomes_a_schedule(tables: Tables) -> None:
    tables.crontab(
        name="Nightly sum, EU",
        timezone="Europe/Berlin",
        kwargs='{"b": 2}',
        args="[1]",
        queue="sums",
        expire_seconds=600,
        headers='{"origin": "beat"}',
        start_time=NOON,
    )
    tables.crontab(hour="3", expires=NOON)
    assert imported("--yes").out.endswith("2 schedules were made.\n")
    one = schedule("Nightly-sum,-EU")
    assert (one.job_type_id, one.origin, one.paused) == (ADD, "admin", False)
    assert (one.rule, one.time_zone) == ("cron 30 2 * * *", "Europe/Berlin")
    assert one.data == {"a": 1, "b": 2}
    assert one.options == {
        "queue": "sums",
        "expires_in": 600,
        "metadata": {"origin": "beat"},
    }
    assert (one.starts_at, one.ends_at) == (NOON, None)
    assert schedule().ends_at == NOON


def test_a_second_import_changes_nothing_and_says_so(tables: Tables) -> None:
    tables.crontab()
    tables.interval(5, "minutes")
    tables.clocked(NOON)
    tables.crontab("off", hour="3", enabled=False)
    assert imported("--yes").out.endswith("3 schedules and 1 job were made.\n")
    before = list(ours().order_by("pk").values())
    again = imported("--yes").out
    assert again.count("is here already") == 4
    assert again.endswith("There is nothing to import.\n")
    assert list(ours().order_by("pk").values()) == before
    assert QueuedJob.objects.count() == 1


def test_another_schedule_of_the_same_name_is_not_taken_for_an_import(
    tables: Tables,
) -> None:
    made = tables.crontab()
    declared = {"job_type_id": ADD, "rule": "every 15", "data": {"a": 3}}
    Schedule.objects.create(name="nightly", origin="code", **declared)
    out = imported("--yes", "--disable-there").out
    assert "nightly is refused: The schedule 'nightly' here is declared by" in out
    made.refresh_from_db()
    assert made.enabled


@pytest.mark.parametrize(
    "changes",
    [{"rule": "every 300"}, {"time_zone": "Asia/Tokyo"}, {"data": {"a": 7}}],
)
def test_an_import_that_was_changed_here_leaves_theirs_on(
    tables: Tables, changes: dict[str, Any]
) -> None:
    made = tables.crontab()
    imported("--yes")
    Schedule.objects.filter(pk="nightly").update(**changes)
    out = imported("--yes", "--disable-there").out
    (name,) = changes
    assert f"here has another {name.replace('_', ' ')}. If it does the same" in out
    made.refresh_from_db()
    assert made.enabled


@pytest.mark.parametrize(
    ("fields", "expression"),
    [
        ({"hour": "*/4", "minute": "0"}, "0 */4 * * *"),
        ({"minute": "0, 30", "hour": "*"}, "0,30 * * * *"),
        ({"day_of_week": "mon-friday"}, "30 2 * * MON-FRI"),
        ({"day_of_week": "fri-mon"}, "30 2 * * 5,6,0,1"),
        ({"hour": "22-2/2"}, "30 22,0,2 * * *"),
        ({"month_of_year": "nov-feb"}, "30 2 * 11,12,1,2 *"),
        ({"day_of_month": "1,15"}, "30 2 1,15 * *"),
        ({"day_of_month": "*/1", "day_of_week": "0"}, "30 2 * * 0"),
    ],
)
def test_celerys_fields_become_those_of_a_rule(
    tables: Tables, fields: dict[str, str], expression: str
) -> None:
    made = tables.crontab(**fields)
    imported("--yes")
    one = schedule()
    assert one.rule == f"cron {expression}"
    # Celery itself knows when it is due: as often as ours fires, at the same moments.
    first = datetime(2030, 1, 1, tzinfo=UTC)
    moments = operations.schedules.preview(expression, "UTC", after=first, number=40)
    theirs = made.schedule
    at = moments[0]
    for moment in moments[1:]:
        theirs.nowfun = lambda at=at: at
        start, delta, _ = theirs.remaining_delta(at)
        assert start + delta == moment
        at = moment


@pytest.mark.parametrize(
    ("every", "period", "rule"),
    [
        (5, "minutes", "every 300"),
        (90, "seconds", "every 90"),
        (2, "hours", "every 7200"),
        (1, "days", "every 86400"),
    ],
)
def test_an_interval_becomes_a_schedule(
    tables: Tables, every: int, period: str, rule: str
) -> None:
    tables.interval(every, period)
    imported("--yes")
    assert schedule("often").rule == rule


def test_a_long_interval_keeps_its_time_of_day(tables: Tables) -> None:
    tables.interval(1, "days", last_run_at=NOON)
    imported("--yes")
    rule = schedule("often").rule
    after = datetime(2030, 7, 1, tzinfo=UTC)
    moments = operations.schedules.preview(rule, after=after, number=2)
    assert [moment.hour for moment in moments] == [12, 12]


def test_a_clocked_task_becomes_one_job(tables: Tables) -> None:
    tables.clocked(NOON, queue="sums")
    assert "once, 2030-06-01 12:00:00  job" in imported().out
    assert imported("--yes").out.endswith("1 job was made.\n")
    (job,) = QueuedJob.objects.all()
    assert (job.job_type_id, job.run_after, job.queue) == (ADD, NOON, "sums")
    assert job.data == {"a": 1}
    assert not ours().exists()


def test_a_one_off_task_becomes_one_job_at_its_next_moment(tables: Tables) -> None:
    tables.crontab(one_off=True, start_time=NOON)
    imported("--yes")
    (job,) = QueuedJob.objects.all()
    assert job.run_after == datetime(2030, 6, 2, 2, 30, tzinfo=UTC)
    assert imported("--yes").out.endswith("There is nothing to import.\n")
    assert QueuedJob.objects.count() == 1


def test_a_job_expires_when_its_task_does(tables: Tables, operated: list[Any]) -> None:
    tables.clocked(NOON, expires=NOON + timedelta(hours=1))
    tables.crontab(one_off=True, start_time=NOON, expires=NOON + timedelta(hours=1))
    assert "nightly is refused: Its moment is over." in imported("--yes").out
    (job,) = QueuedJob.objects.all()
    assert job.expires_at == NOON + timedelta(hours=1)
    assert [one["verb"] for one in operated] == ["enqueue"]


def test_no_control_character_of_theirs_reaches_the_terminal(tables: Tables) -> None:
    tables.crontab("a\x1b[2Jb", task="x.\x1b[2Jy")
    out = imported().out
    assert "\x1b" not in out
    assert "a[2Jb is refused: No handler is called '\\x1b[2Jy'" in out


def test_a_disabled_task_becomes_a_paused_schedule(tables: Tables) -> None:
    tables.crontab(enabled=False)
    assert "paused schedule" in imported("--yes").out
    one = schedule()
    assert one.paused
    assert one.paused_reason == "disabled in django-celery-beat"


def test_the_sun_is_refused_by_name(tables: Tables) -> None:
    model = tables.model("SolarSchedule")
    solar = model.objects.create(event="sunset", latitude=54, longitude=10)
    tables.periodic("lamps", solar=solar)
    tables.crontab()
    assert refusal("lamps") == (
        "It follows the sun (sunset), for which there is no rule."
    )
    assert schedule().rule == "cron 30 2 * * *"  # the others are imported


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"kwargs": '{"c": 1}'}, "has no parameter 'c'"),
        ({"kwargs": "{}"}, "is missing 'a'"),
        ({"args": "[1, 2, 3]", "kwargs": "{}"}, "at most 2 positional arguments"),
        ({"kwargs": '{"a": "x"}'}, "'a'"),
        ({"kwargs": "{a}"}, "Its kwargs are no JSON dict."),
        ({"args": "{}"}, "Its args are no JSON list."),
        ({"task": "shop.tasks.unheard_of"}, "say --map shop.tasks.unheard_of=…"),
        ({"task": "celery.backend_cleanup"}, "RETENTION"),
        ({"day_of_month": "1-7", "day_of_week": "1"}, "both match"),
        ({"hour": "25"}, "cannot read the hour"),
        ({"queue": "two words"}, "queue"),
        ({"one_off": True, "total_run_count": 1}, "has run"),
        ({"one_off": True, "enabled": False}, "disabled there"),
        ({"start_time": NOON, "expires": NOON - timedelta(1)}, "before starts"),
    ],
)
def test_what_cannot_be_said_here_is_refused_with_its_reason(
    tables: Tables, fields: dict[str, Any], reason: str
) -> None:
    tables.crontab(**fields)
    assert reason in refusal()


def test_moments_that_are_over_and_parts_of_seconds_are_refused(
    tables: Tables,
) -> None:
    tables.clocked(timezone.now() - timedelta(days=1))
    tables.interval(5, "microseconds")
    assert refusal("once") == "Its moment is over."
    assert "whole seconds" in refusal("often")


@pytest.mark.parametrize(
    ("broker", "priority", "ours"),
    [
        ("amqp://localhost", 3, 30),
        ("amqp://localhost", 255, 100),
        ("redis://localhost", 3, -30),
    ],
)
def test_a_priority_counts_as_its_broker_counts(
    tables: Tables, settings: Any, broker: str, priority: int, ours: int
) -> None:
    settings.CELERY_BROKER_URL = broker
    tables.crontab(priority=priority)
    imported("--yes")
    assert schedule().options == {"priority": ours}


def test_what_means_nothing_here_is_named_and_left(tables: Tables) -> None:
    tables.crontab(priority=3, exchange="sums", routing_key="a.b")
    out = imported("--yes").out
    assert "nightly: Its exchange 'sums' is left" in out
    assert "nightly: Its routing_key 'a.b' is left" in out
    assert "nightly: Its priority 3 is left" in out
    assert schedule().options == {}


def test_a_map_names_the_job_type(tables: Tables) -> None:
    tables.crontab(task="shop.tasks.nightly")
    imported("--yes", "--map", f"shop.tasks.nightly={KEEP}")
    assert schedule().job_type_id == KEEP


def test_a_handler_is_found_by_the_name_of_its_function(tables: Tables) -> None:
    tables.crontab(task="shop.tasks.keep_typed", kwargs='{"text": "a"}')
    imported("--yes")
    assert schedule().job_type_id == "tests.sample.keep_typed"


def test_several_handlers_of_one_name_are_not_chosen_from(tables: Tables) -> None:
    tables.crontab(task="shop.tasks.add")
    same_name = [name for name in sorted(handler_names()) if name.endswith(".add")]
    assert len(same_name) > 1
    assert refusal() == (
        f"Several handlers are named 'add': {', '.join(same_name)}; "
        "say --map shop.tasks.add=…."
    )


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("tests.sample.ad=tests.sample.keep", "Did you mean 'tests.sample.add'?"),
        ("tests.sample.add=tests.sample.ad", "There is no job type 'tests.sample.ad'"),
        ("tests.sample.add", "write TASK=TYPE"),
    ],
)
def test_a_map_with_a_wrong_name_is_refused(
    tables: Tables, given: str, reason: str
) -> None:
    tables.crontab()
    with pytest.raises(CommandError, match=reason.replace("?", r"\?")):
        imported("--map", given)


def test_theirs_are_disabled_in_the_same_transaction(tables: Tables) -> None:
    good = tables.crontab()
    bad = tables.crontab("bad", task="unheard_of", hour="3")
    changes = tables.model("PeriodicTasks").objects
    before = changes.get().last_update
    dry = imported("--disable-there").out
    assert "1 would be turned off in django-celery-beat." in dry
    good.refresh_from_db()
    assert good.enabled
    out = imported("--yes", "--disable-there").out
    assert out.endswith(
        "1 schedule was made. 1 was turned off in django-celery-beat.\n"
    )
    good.refresh_from_db()
    bad.refresh_from_db()
    assert (good.enabled, bad.enabled) == (False, True)
    assert changes.get().last_update > before  # so a beat that runs reads them again
    assert not schedule().paused
    again = imported("--yes", "--disable-there").out
    assert again.endswith("There is nothing to import.\n")


def test_theirs_can_be_disabled_after_the_import(tables: Tables) -> None:
    made = tables.crontab()
    imported("--yes")
    out = imported("--yes", "--disable-there").out
    assert out.endswith(
        "There is nothing to import. 1 was turned off in django-celery-beat.\n"
    )
    made.refresh_from_db()
    assert not made.enabled


def test_an_import_that_fails_leaves_everything_as_it_was(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tables.crontab()

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("the disk is full")

    tables.crontab("off", hour="3", enabled=False)
    monkeypatch.setattr(operations.schedules, "pause", fail)
    with pytest.raises(RuntimeError), transaction.atomic():
        imported("--yes", "--disable-there")
    made.refresh_from_db()
    assert made.enabled
    assert not ours().exists()


def test_a_schedule_of_another_job_type_is_never_touched(tables: Tables) -> None:
    operations.schedules.create("nightly", KEEP, rule="@daily", data={"a": 1})
    made = tables.crontab()
    out = imported("--yes", "--disable-there").out
    assert "The schedule 'nightly' here has another job type" in out
    made.refresh_from_db()
    assert made.enabled


def test_code_declares_what_would_be_made(tables: Tables) -> None:
    tables.crontab("Nightly sum", timezone="Europe/Berlin", queue="sums")
    tables.interval(90, "minutes", start_time=NOON)
    tables.clocked(NOON)
    tables.crontab("off", hour="3", enabled=False)
    tables.crontab("sun\nimport os", task="unheard_of", hour="4")
    code = imported("--as", "code").out
    assert not ours().exists()
    declared: dict[str, Any] = {}
    exec(compile(code, "jobs.py", "exec"), declared)
    from django_jobqueue.domain.schedules import schedules

    assert {"Nightly-sum", "often"} <= set(schedules.names)
    assert "off" not in schedules.names
    assert "os" not in declared
    imported("--yes")
    for name in ("Nightly-sum", "often"):
        one, written = schedules.get(name), schedule(name)
        assert one is not None
        assert one.rule.text == written.rule
        assert one.data == written.data
        assert one.options == written.options
        assert one.starts_at == written.starts_at
    assert "# off (tests.sample.add) is disabled there." in code
    assert "# once (tests.sample.add): once, so not in jobs.py." in code


def test_an_imported_schedule_fires(tables: Tables) -> None:
    tables.crontab(kwargs='{"a": 20, "b": 22}')
    begin = datetime(2030, 1, 1, tzinfo=UTC)
    with testing.clock(begin) as time:
        imported("--yes")
        testing.fire_schedules()
        time.move(days=1)
        made = [one for one in testing.fire_schedules() if one.job_type == ADD]
    assert [one.data for one in made] == [{"a": 20, "b": 22}]


def test_a_missing_table_is_explained(db: None) -> None:
    with pytest.raises(CommandError, match="There is no table django_celery_beat"):
        imported()


def test_options_of_the_scan_are_refused(db: None) -> None:
    with pytest.raises(CommandError, match="--scan is not for celery-beat"):
        imported("--scan", "src")
