"""``jobqueue schedules`` and ``jobqueue schedule``."""

from __future__ import annotations

import io
import re
import sys
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from django_jobqueue.contrib.schedules import operations
from django_jobqueue.contrib.schedules.models import Firing, Schedule
from django_jobqueue.domain.schedule_rules import every
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.models import JobType, QueuedJob, Worker
from tests.commands.conftest import Terminal, jobqueue, not_refused, refusal
from tests.stats.rows import ADD, fired, schedule, worker

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
CODE: dict[str, Any] = {"origin": "code", "data": {"a": 1}}


@pytest.fixture(autouse=True)
def _no_schedules(db: None) -> None:
    Schedule.objects.all().delete()


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is there to answer, unless a test says so."""
    monkeypatch.setattr(sys, "stdin", io.StringIO())


def words(name: str) -> list[str]:
    lines = jobqueue("schedules").out.splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name} "))
    return re.split(r"\s{2,}", line)


def facts(name: str) -> dict[str, str]:
    head = jobqueue(f"schedule {name}").out.partition("\n\n")[0].splitlines()
    return dict(re.split(r"\s{2,}", line, maxsplit=1) for line in head)  # type: ignore[misc]


def as_json(line: str) -> Any:
    return jobqueue(f"{line} --format json").json


# The list.


def test_schedules_are_listed_with_what_holds_and_what_is_wrong() -> None:
    worker()
    schedule("hourly", due=5 * MINUTE + timedelta(seconds=30))
    fired(3 * MINUTE, "failed", name="hourly")
    schedule("late", due=-5 * MINUTE, rule_override="every 300", **CODE)
    schedule("off", paused=True, paused_by="anna", paused_reason="moved")
    schedule("broken", rule="cron 61 * * * *", time_zone="Europe/Berlin")
    name, state, rule, zone, _next, last, note = words("hourly")
    assert (name, state, rule, zone) == ("hourly", "active", "every hour", "UTC")
    assert last == "3 m ago, fired, job failed"
    assert note == "its last job failed"
    assert words("late")[1:3] == ["overdue", "every 5 minutes"]
    assert words("late")[-1] == "overridden: rule"
    assert words("off")[4:] == ["-", "-", "anna: moved"]
    assert words("broken")[1] == "broken"
    assert "cannot read the minute" in words("broken")[-1]


def test_the_list_for_programs() -> None:
    text = "No schedules. Those of the code begin when runworkers starts: "
    assert jobqueue("schedules").out.startswith(text)
    assert jobqueue("schedules --next 3").out == "No schedule fires.\n"
    assert as_json("schedules") == []
    assert "at least 1" in refusal("schedules --next 0")
    JobType.objects.filter(name=ADD).update(sensitive=["token"])
    of_code = {"origin": "code", "rule_override": "every 60"}
    schedule(due=MINUTE, data={"token": "hunter2"}, **of_code)
    job = fired(MINUTE, "running")
    (one,) = as_json("schedules")
    assert (one["name"], one["origin"], one["state"]) == ("nightly", "code", "active")
    assert (one["rule"], one["code"]["rule"]) == ("every minute", "every 3600")
    assert one["overridden"] == ["rule"]
    assert "hunter2" not in str(one)
    assert (one["last"]["job_id"], one["last"]["job_status"]) == (str(job), "running")
    assert one["is_served"] is False
    assert datetime.fromisoformat(one["next_at"]) > timezone.now()


def test_the_next_firings_of_all_are_listed_in_their_order() -> None:
    schedule("nightly", rule="cron 30 2 * * *", time_zone="Europe/Berlin")
    schedule("daily", rule="cron 0 12 * * *", time_zone="UTC")
    schedule("off", rule="every 1", paused=True)
    schedule("late", rule="cron 0 0 1 1 *", due=-5 * MINUTE)
    found = as_json("schedules --next 5")
    moments = [datetime.fromisoformat(one["fires_at"]) for one in found]
    assert moments == sorted(moments)
    assert found[0]["schedule"] == "late"
    assert (
        sorted(one["schedule"] for one in found[1:]) == ["daily"] * 2 + ["nightly"] * 2
    )
    for one in found:
        if one["schedule"] == "nightly":
            assert "T02:30:00" in one["local"]
    text = jobqueue("schedules --next 5").out
    assert len(text.splitlines()) == 6
    assert "off" not in text


# One of them.


def test_one_is_shown_with_its_next_moments_and_its_last_firings() -> None:
    schedule(due=5 * MINUTE, time_zone_override="Europe/Berlin", **CODE)
    job = fired(MINUTE, "succeeded")
    moment = timezone.now() - 9 * MINUTE
    Firing.objects.create(
        schedule="nightly", fires_at=moment, outcome="missed", number=12
    )
    found = facts("nightly")
    assert found["Schedule"] == "nightly"
    assert found["State"] == "active; no living worker claims its jobs"
    assert found["Time zone"] == "Europe/Berlin"
    assert found["Overridden"] == "time_zone"
    assert found["Data"] == '{"a": 1}'
    text = jobqueue("schedule nightly --next 3").out
    _facts, following, firings = text.split("\n\n")
    assert len(following.splitlines()) == 4
    assert str(job) in firings
    assert "missed  12 of them" in firings
    shown = as_json("schedule nightly --next 3")
    assert len(shown["next"]) == 3
    assert [one["outcome"] for one in shown["firings"]] == ["fired", "missed"]


def test_it_is_run_now() -> None:
    schedule(data={"a": 4}, overlap="skip")
    assert refusal("schedule nigtly --run") == (
        "There is no schedule 'nigtly'. Did you mean 'nightly'?"
    )
    said = jobqueue("schedule nightly --run").out
    (job,) = QueuedJob.objects.all()
    assert said == f"Enqueued the job {job.pk} of type {ADD}.\n"
    assert (job.data, job.metadata["schedule"]) == ({"a": 4}, "nightly")
    firing = Firing.objects.get()
    assert (firing.outcome, firing.job_id) == ("manual", job.pk)
    assert firing.by.startswith("command line (")
    assert refusal("schedule nightly --run")  # one that skips overlaps
    QueuedJob.objects.all().delete()
    second = as_json("schedule nightly --run")
    assert QueuedJob.objects.filter(pk=second["job_id"]).exists()


def test_it_is_paused_with_a_reason_and_resumed() -> None:
    schedule()
    pause = "schedule nightly --pause"
    assert jobqueue(f"{pause} --reason 'disk is full'").out == "Paused nightly.\n"
    row = Schedule.objects.get()
    assert (row.paused, row.paused_reason) == (True, "disk is full")
    assert jobqueue(pause).out == "nightly was already paused.\n"
    row.refresh_from_db()
    assert row.paused_reason == "disk is full"
    again = jobqueue(f"{pause} --reason 'disk is being replaced'")
    assert again.out == "Paused nightly.\n"
    row.refresh_from_db()
    assert row.paused_reason == "disk is being replaced"
    assert as_json("schedule nightly --resume")["state"] == "active"
    assert jobqueue("schedule nightly --resume").out == "nightly was not paused.\n"


def test_a_rule_and_zone_of_the_code_are_overridden_and_cleared() -> None:
    schedule(**CODE)
    said = jobqueue("schedule nightly --rule '30 4 * * *' --tz Europe/Berlin").out
    assert said.startswith("nightly: 30 4 * * * (Europe/Berlin), next at 2")
    row = Schedule.objects.get()
    assert (row.rule, row.rule_override) == ("every 3600", "cron 30 4 * * *")
    assert row.time_zone_override == "Europe/Berlin"
    jobqueue("schedule nightly --rule code")
    row.refresh_from_db()
    assert (row.rule_override, row.time_zone_override) == (None, "Europe/Berlin")
    jobqueue("schedule", "nightly", "--data", '{"a": 9}')
    assert as_json("schedule nightly")["data"] == {"a": 9}
    assert as_json("schedule nightly --reset")["overridden"] == []


def test_the_rule_of_an_operators_own_is_its_rule_and_the_rest_stays() -> None:
    rich = {
        "options": {"priority": 7},
        "overlap": "skip",
        "jitter": 30,
        "missed": "all",
    }
    operations.create("mine", ADD, rule="every 5 minutes", data={"a": 3}, **rich)
    before = Schedule.objects.values().get()
    jobqueue("schedule mine --rule 'every 10 minutes'")
    after = Schedule.objects.values().get()
    assert after == {**before, "rule": "every 600"}
    assert refusal("schedule mine --rule code") == (
        "No code declares mine: it has no overrides to clear."
    )
    assert "was made by an operator" not in refusal("schedule mine --reset")


def test_what_cannot_be_is_refused_and_nothing_changes() -> None:
    schedule(**CODE)
    before = Schedule.objects.values().get()
    reasons = {
        "--rule '30 4 * *'": "has 4 fields",
        "--rule 'every moon'": "write for example every 5 minutes",
        "--tz Europe/Berlim": "Did you mean 'Europe/Berlin'?",
        "--tz ''": "there is no time zone ''",
        "--rule ''": "rule",
        """--data '{"a": "nine"'""": "The data is not JSON",
        "--data [1]": "must be an object",
        """--data '{"b": 1}'""": "is missing 'a'",
        "--reason why": "--reason works only with --pause.",
        "--yes": "--yes works only with --delete.",
        "--run --rule 'every 5 minutes'": "--rule does not go with --run.",
        "--run --pause": "not allowed with",
        "--puase": "Did you mean '--pause'?",
        "--json": "Write --format json.",
        "--delete": "is declared by the code",
        "--delete --yes": "is declared by the code",
    }
    assert not_refused("schedule nightly", reasons) == {}
    assert Schedule.objects.values().get() == before
    for write in (
        lambda rule: operations.override("nightly", rule=rule),
        lambda rule: operations.create("n", ADD, rule=rule),
    ):
        with pytest.raises(InvalidArguments, match="rule: write it as a text"):
            write(every(minutes=5))


def test_one_that_no_code_declares_is_deleted_once_it_is_confirmed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schedule("old", gone_at=timezone.now(), **CODE)
    fired(MINUTE, name="old")
    for verb in ("--pause", "--run"):
        assert "No code declares it" in jobqueue(f"schedule old {verb}").out
    refused = refusal("schedule old --delete")
    assert refused == "No terminal to confirm on; pass --yes."
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    assert refusal("schedule old --delete") == "Nothing was deleted."
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert jobqueue("schedule old --delete").out == "Deleted the schedule old.\n"
    assert not Schedule.objects.exists()
    assert not Firing.objects.exists()
    schedule("mine")
    assert as_json("schedule mine --delete --yes") == {"deleted": "mine"}


def test_a_schedule_whose_handler_is_gone_too_is_deleted() -> None:
    """Unless a worker of another project, which lives, has the handler."""
    JobType.objects.create(name="old.report")
    schedule("weekly", job_type_id="old.report", **CODE)
    lease = timezone.now() + MINUTE
    other = worker("elsewhere", job_types=["old.report"], lease_until=lease)
    assert "is declared by" in refusal("schedule weekly --delete --yes")
    Worker.objects.filter(pk=other.pk).update(lease_until=lease - 2 * MINUTE)
    jobqueue("schedule weekly --delete --yes")
    assert not Schedule.objects.exists()
