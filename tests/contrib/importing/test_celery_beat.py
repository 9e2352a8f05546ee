"""``jobqueue import celery-beat``, on the tables of the released package."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from django_jobqueue.contrib.schedules import operations as schedule_operations
from django_jobqueue.contrib.schedules.models import Schedule
from django_jobqueue.domain.registry import handler_names
from django_jobqueue.domain.schedule_rules import cron
from django_jobqueue.domain.schedules import schedules
from django_jobqueue.models import QueuedJob
from tests.commands.conftest import Said, jobqueue, not_refused, refusal
from tests.sample import jobs

NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)
ADD, KEEP = "tests.sample.add", "tests.sample.keep"


def imported(line: str = "") -> Said:
    return jobqueue(f"import celery-beat {line}")


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
        model = self.model("IntervalSchedule")
        interval = model.objects.create(every=every, period=period)
        return self.periodic(**{"name": "often", **fields}, interval=interval)

    def clocked(self, moment: datetime, **fields: Any) -> Any:
        clocked = self.model("ClockedSchedule").objects.create(clocked_time=moment)
        return self.periodic("once", clocked=clocked, one_off=True, **fields)

    def periodic(self, name: str, **fields: Any) -> Any:
        fields = {"task": "tests.sample.add", "kwargs": '{"a": 1}', **fields}
        return self.model("PeriodicTask").objects.create(name=name, **fields)


@pytest.fixture
def tables(beat: Any) -> Tables:
    return Tables(beat)


def ours() -> Any:
    return Schedule.objects.filter(origin="admin")


FIELDS: dict[str, dict[str, str]] = {
    "0 */4 * * *": {"hour": "*/4", "minute": "0"},
    "0,30 * * * *": {"minute": "0, 30", "hour": "*"},
    "30 2 * * MON-FRI": {"day_of_week": "mon-friday"},
    "30 2 * * 5,6,0,1": {"day_of_week": "fri-mon"},
    "30 22,0,2 * * *": {"hour": "22-2/2"},
    "30 2 * 11,12,1,2 *": {"month_of_year": "nov-feb"},
    "30 2 1,15 * *": {"day_of_month": "1,15"},
    "30 2 * * 0": {"day_of_month": "*/1", "day_of_week": "0"},
}
REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("has no parameter 'c'", {"kwargs": '{"c": 1}'}),
    ("is missing 'a'", {"kwargs": "{}"}),
    ("at most 2 positional arguments", {"args": "[1, 2, 3]", "kwargs": "{}"}),
    ("'a'", {"kwargs": '{"a": "x"}'}),
    ("Its kwargs are no JSON dict.", {"kwargs": "{a}"}),
    ("Its args are no JSON list.", {"args": "{}"}),
    ("say --map shop.tasks.unheard_of=…", {"task": "shop.tasks.unheard_of"}),
    ("RETENTION", {"task": "celery.backend_cleanup"}),
    ("both match", {"day_of_month": "1-7", "day_of_week": "1"}),
    ("cannot read the hour", {"hour": "25"}),
    ("queue", {"queue": "two words"}),
    ("has run", {"one_off": True, "total_run_count": 1}),
    ("disabled there", {"one_off": True, "enabled": False}),
    ("before starts", {"start_time": NOON, "expires": NOON - timedelta(1)}),
]


def schedule(name: str = "nightly") -> Schedule:
    return Schedule.objects.get(pk=name)


def refusals() -> dict[str, str]:
    """Why each is refused, of which nothing may be written."""
    lines = [
        line for line in imported("--yes").out.splitlines() if " is refused: " in line
    ]
    found = dict(line.split(" is refused: ") for line in lines)
    assert not Schedule.objects.filter(pk__in=found).exists()
    assert not QueuedJob.objects.exists()
    return found


def test_a_crontab_is_shown_and_nothing_written(tables: Tables) -> None:
    tables.crontab(timezone="Europe/Berlin")
    out = imported().out
    assert "30 2 * * * (Europe/Berlin)  schedule" in out
    assert out.endswith("1 schedule would be made. Nothing was changed; pass --yes.\n")
    assert "1 schedule would be made." in imported("--yes --dry-run").out
    assert not ours().exists()


def test_a_crontab_becomes_a_schedule(tables: Tables) -> None:
    tables.crontab(
        name="Nightly sum, EU",
        timezone="Europe/Berlin",
        kwargs='{"b": 2}',
        args="[1]",
        queue="sums",
        expire_seconds=600,
        headers='{"origin": "beat", "schedule": "nightly"}',
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
    tables.crontab()
    tables.crontab("daily", hour="3")
    declared = {"job_type_id": ADD, "rule": "every 15", "data": {"a": 3}}
    Schedule.objects.create(name="nightly", origin="code", **declared)
    schedule_operations.create("daily", KEEP, rule="@daily", data={"a": 1})
    out = imported("--yes --disable-there").out
    assert "nightly is refused: The schedule 'nightly' here is declared by" in out
    assert "The schedule 'daily' here has another job type" in out
    assert tables.model("PeriodicTask").objects.filter(enabled=True).count() == 2


def test_what_a_schedule_here_does_already_is_not_imported_beside_it(
    tables: Tables,
) -> None:
    """Whatever the names, and however the rules are written."""
    made = {
        name: tables.crontab(name, **fields)
        for name, fields in {
            "same": {},
            "other-data": {"kwargs": '{"a": 2}'},
            "other-time": {"hour": "3"},
            "other-zone": {"timezone": "Asia/Tokyo"},
            "overridden": {"hour": "4"},
            "by-hand": {"hour": "5"},
            "not-deployed": {"hour": "6"},
            "gone": {"hour": "7"},
            "off": {"hour": "8", "enabled": False},
        }.items()
    }
    code = {"origin": "code", "job_type_id": ADD, "data": {"a": 1}, "time_zone": "UTC"}
    for name, rule, more in (
        ("nightly-add", "cron 30 2 * * *", {}),
        ("four", "@daily", {"rule_override": "cron 30 4 * * *"}),
        ("seven", "cron 30 7 * * *", {"gone_at": timezone.now()}),
        ("eight", "cron 30 8 * * 0-6", {"paused": True}),
    ):
        Schedule.objects.create(name=name, rule=rule, **code, **more)
    schedule_operations.create("five", ADD, rule="30 5 * * *", data={"a": 1})
    declared = jobs.add.at(cron("30 6 * * *"), name="six")(a=1)
    try:
        out = imported("--yes --disable-there").out
    finally:
        schedules.remove(declared.name)
    refused = {"same", "overridden", "by-hand", "not-deployed", "off"}
    reason = "fires at the same moments with the same data. Disable theirs by hand."
    assert out.count(reason) == len(refused)
    for name, one in made.items():
        one.refresh_from_db()
        assert one.enabled == (name in refused - {"off"}), name
    assert {one.name for one in ours()} == {"five", *made.keys() - refused}
    assert "'nightly-add' here, which the code declares, fires" in out
    assert "The schedule 'five' here fires" in out


def test_an_import_that_was_changed_here_leaves_theirs_on(tables: Tables) -> None:
    made = tables.crontab()
    imported("--yes")
    for name, value in (
        ("rule", "every 300"),
        ("time_zone", "Asia/Tokyo"),
        ("data", {"a": 7}),
    ):
        before = Schedule.objects.values().get(pk="nightly")
        Schedule.objects.filter(pk="nightly").update(**{name: value})
        out = imported("--yes --disable-there").out
        assert f"here has another {name.replace('_', ' ')}. If it does the same" in out
        made.refresh_from_db()
        assert made.enabled
        Schedule.objects.filter(pk="nightly").update(**before)


def test_celerys_fields_become_those_of_a_rule(tables: Tables) -> None:
    made = {
        expression: tables.crontab(expression.replace("*", "x"), **fields)
        for expression, fields in FIELDS.items()
    }
    imported("--yes")
    rules = list(ours().values_list("rule", flat=True))
    assert sorted(rules) == sorted(f"cron {expression}" for expression in made)
    # Celery itself knows when it is due: as often as ours fires, at the same moments.
    first = datetime(2030, 1, 1, tzinfo=UTC)
    for expression, one in made.items():
        theirs, preview = one.schedule, schedule_operations.preview
        at, *moments = preview(expression, "UTC", after=first, number=40)
        for moment in moments:
            theirs.nowfun = lambda at=at: at
            start, delta, _ = theirs.remaining_delta(at)
            assert start + delta == moment, expression
            at = moment


def test_an_interval_becomes_a_schedule(tables: Tables) -> None:
    intervals = {
        (5, "minutes"): 300,
        (90, "seconds"): 90,
        (2, "hours"): 7200,
        (1, "days"): 86400,
    }
    for every, period in intervals:
        tables.interval(every, period, name=period)
    tables.interval(2, "days", name="noon", last_run_at=NOON)
    imported("--yes")
    rules = {period: schedule(period).rule for _, period in intervals}
    assert rules == {of: f"every {seconds}" for (_, of), seconds in intervals.items()}
    after = datetime(2030, 7, 1, tzinfo=UTC)
    noon = schedule("noon").rule  # keeps its time of day
    moments = schedule_operations.preview(noon, after=after, number=2)
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
    assert "\x1b" not in imported().out
    assert refusals()["a[2Jb"].startswith("No handler is called '\\x1b[2Jy'")


def test_a_disabled_task_becomes_a_paused_schedule(tables: Tables) -> None:
    tables.crontab(enabled=False)
    assert "paused schedule" in imported("--yes").out
    one = schedule()
    assert (one.paused, one.paused_reason) == (True, "disabled in django-celery-beat")


def test_what_cannot_be_said_here_is_refused_with_its_reason(tables: Tables) -> None:
    for number, (_, fields) in enumerate(REFUSED):
        tables.crontab(f"r{number}", **fields)
    tables.clocked(timezone.now() - timedelta(days=1))
    tables.interval(5, "microseconds")
    solar = tables.model("SolarSchedule").objects.create(
        event="sunset", latitude=54, longitude=10
    )
    tables.periodic("lamps", solar=solar)
    tables.crontab(hour="7")
    found = refusals()
    reasons = {f"r{number}": reason for number, (reason, _) in enumerate(REFUSED)}
    reasons |= {"once": "Its moment is over.", "often": "whole seconds"}
    reasons["lamps"] = "It follows the sun (sunset), for which there is no rule."
    wrong = {n: told for n, told in found.items() if reasons.get(n, "?") not in told}
    assert (wrong, found.keys()) == ({}, reasons.keys())
    assert schedule().rule == "cron 30 7 * * *"  # the others are imported


def test_a_priority_counts_as_its_broker_counts(tables: Tables, settings: Any) -> None:
    for broker, priority, ours in (
        ("amqp", 3, 30),
        ("amqp", 255, 100),
        ("redis", 3, -30),
    ):
        name = f"{broker}-{priority}"
        settings.CELERY_BROKER_URL = f"{broker}://localhost"
        tables.crontab(name, priority=priority)
        imported("--yes")
        assert schedule(name).options == {"priority": ours}


def test_what_means_nothing_here_is_named_and_left(tables: Tables) -> None:
    tables.crontab(priority=3, exchange="sums", routing_key="a.b")
    out = imported("--yes").out
    assert "nightly: Its exchange 'sums' is left" in out
    assert "nightly: Its routing_key 'a.b' is left" in out
    assert "nightly: Its priority 3 is left" in out
    assert schedule().options == {}


def test_a_handler_is_found_by_a_map_or_by_the_name_of_its_function(
    tables: Tables,
) -> None:
    tables.crontab(task="shop.tasks.nightly")
    tables.crontab("typed", task="shop.tasks.keep_typed", kwargs='{"text": "a"}')
    tables.crontab("several", task="shop.tasks.add")
    same_name = [name for name in sorted(handler_names()) if name.endswith(".add")]
    assert len(same_name) > 1
    assert refusals()["several"] == (
        f"Several handlers are named 'add': {', '.join(same_name)}; "
        "say --map shop.tasks.add=…."
    )
    imported(f"--yes --map shop.tasks.nightly={KEEP}")
    assert schedule().job_type_id == KEEP
    assert schedule("typed").job_type_id == "tests.sample.keep_typed"


def test_arguments_that_make_no_sense_are_refused(tables: Tables) -> None:
    tables.crontab()
    reasons = {
        "--map tests.sample.ad=tests.sample.keep": "Did you mean 'tests.sample.add'?",
        "--map tests.sample.add=tests.sample.ad": "no job type 'tests.sample.ad'",
        "--map tests.sample.add": "write TASK=TYPE",
        "--scan src": "--scan is not for celery-beat",
    }
    assert not_refused("import celery-beat", reasons) == {}


def test_theirs_are_disabled_in_the_same_transaction(tables: Tables) -> None:
    good = tables.crontab()
    bad = tables.crontab("bad", task="unheard_of", hour="3")
    changes = tables.model("PeriodicTasks").objects
    before = changes.get().last_update
    dry = imported("--disable-there").out
    assert "1 would be turned off in django-celery-beat." in dry
    good.refresh_from_db()
    assert good.enabled
    turned_off = "1 was turned off in django-celery-beat.\n"
    out = imported("--yes --disable-there").out
    assert out.endswith(f"1 schedule was made. {turned_off}")
    good.refresh_from_db()
    bad.refresh_from_db()
    assert (good.enabled, bad.enabled) == (False, True)
    assert changes.get().last_update > before  # so a beat that runs reads them again
    assert not schedule().paused
    nothing = "There is nothing to import."
    assert imported("--yes --disable-there").out.endswith(f"{nothing}\n")
    tables.model("PeriodicTask").objects.filter(pk=good.pk).update(enabled=True)
    out = imported("--yes --disable-there").out
    assert out.endswith(f"{nothing} {turned_off}")


def test_an_import_that_fails_leaves_everything_as_it_was(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tables.crontab()

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("the disk is full")

    tables.crontab("off", hour="3", enabled=False)
    monkeypatch.setattr(schedule_operations, "pause", fail)
    with pytest.raises(RuntimeError), transaction.atomic():
        imported("--yes --disable-there")
    made.refresh_from_db()
    assert made.enabled
    assert not ours().exists()


def test_code_declares_what_would_be_made(tables: Tables) -> None:
    tables.crontab("Nightly sum", timezone="Europe/Berlin", queue="sums")
    tables.interval(90, "minutes", start_time=NOON)
    tables.clocked(NOON)
    tables.crontab("off", hour="3", enabled=False)
    tables.crontab("sun\nimport os", task="unheard_of", hour="4")
    code = imported("--as code").out
    assert not ours().exists()
    declared: dict[str, Any] = {}
    exec(compile(code, "jobs.py", "exec"), declared)
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


def test_a_missing_table_is_explained(db: None) -> None:
    for source, table in (
        ("celery-beat", "django_celery_beat"),
        ("django-q2", "django_q_schedule"),
    ):
        assert f"There is no table {table}" in refusal(f"import {source}")
