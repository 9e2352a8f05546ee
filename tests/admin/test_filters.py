"""Filters of the lists of jobs: tabs, choices, ranges of time, what is typed; and what
is in force, above the list."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.test import Client, modify_settings
from django.utils import timezone

from django_jobqueue.models import ArchivedJob, QueuedJob
from tests.admin import scene as rows
from tests.admin import units
from tests.admin.pages import get, list_of
from tests.admin.scene import DAY, FAIL, LEAK, ONCE, Scene
from tests.support.tables import differing

RANGE = "finished_at__range__"
FAILED = {"failed", "once", "secret", "gone"}


def asked(link: str) -> dict[str, str]:
    return {k: v[-1] for k, v in parse_qs(urlsplit(link).query).items()}


def test_jobs_by_each_filter(anna: Client, scene: Scene) -> None:
    names = {str(id): k for k, id in (scene.queued | scene.archived).items()}
    QueuedJob.objects.filter(pk=scene.queued["later"]).update(queue="of one")
    once = ArchivedJob.objects.filter(pk=scene.archived["once"])
    once.update(priority=5, worker='web "1":7')
    names[str(rows.queued(FAIL, replay_of=scene.archived["failed"]))] = "replay"

    def found(model: str, query: dict[str, str]) -> set[str]:
        return {names[id] for id in units.shown(anna, model, **query)}

    archived = set(scene.archived)
    by_queued: list[tuple[dict[str, str], set[str]]] = [
        ({"state": "ready"}, {"ready", "expiring", "paused", "replay"}),
        ({"state": "later"}, {"later", "retrying"}),
        ({"state": "retrying"}, {"retrying"}),
        ({"state": "running"}, {"running", "lapsed", "unclaimed"}),
        ({"state": "cancelling"}, {"cancelling"}),
        ({"state": "lapsed"}, {"lapsed", "unclaimed"}),
        ({"state": "succeeded"}, set()),
        ({"state": "x"}, set()),
        ({"job_type": FAIL}, {"retrying", "replay"}),
        ({"queue": "of one"}, {"later"}),
        ({"error": "ValueError"}, {"retrying"}),
        ({"worker": "web-1:1"}, {"running", "cancelling"}),
    ]
    by_archived: list[tuple[dict[str, str], set[str]]] = [
        ({"status": "succeeded"}, {"succeeded"}),
        ({"status": "failed"}, FAILED),
        ({"status": "expired"}, {"expired"}),
        ({"status": "queued"}, set()),
        ({"job_type": ONCE}, {"once"}),
        ({"job_type": "shop.removed"}, {"gone"}),
        ({"job_type": "x"}, set()),
        ({"job_type": LEAK, "status": "failed"}, {"secret"}),
        ({"fingerprint": str(scene.group)}, FAILED),
        ({"fingerprint": "x"}, set()),
        ({"priority": "5"}, {"once"}),
        ({"priority": " > 0 "}, {"once"}),
        ({"priority": "-9..4"}, archived - {"once"}),
        ({"priority": " "}, archived),
        ({"worker": 'web "1":7'}, {"once"}),
        ({"error": "ValueError"}, FAILED),
        ({"replayed": "yes"}, {"failed"}),
        ({"replayed": "no"}, archived - {"failed"}),
        ({"replayed": "x"}, set()),
        ({"q": str(scene.archived["failed"]), "status": "failed"}, {"failed"}),
        ({"q": str(scene.archived["failed"]), "status": "expired"}, set()),
    ]
    cases = [("queuedjob", *one) for one in by_queued]
    cases += [("archivedjob", *one) for one in by_archived]
    assert differing(cases, found) == []
    for state, expected in (("open", [str(scene.group)]), ("resolved", [])):
        assert units.shown(anna, "failuregroup", state=state) == expected
    (queues,) = [
        one
        for one in units.listing(anna, "queuedjob").filter_specs
        if one.title == "queue"
    ]
    offered = {name for name, _label in queues.lookup_choices}
    assert {"of one", "default", "mail", "images"} <= offered


def test_filters_that_are_typed_say_what_is_wrong(anna: Client, scene: Scene) -> None:
    page = units.listing(anna, "archivedjob", priority="high")
    assert not page.result_list
    why = "No rows, because “priority” is invalid: “high” is not a whole number."
    assert why in page.notes


def test_a_range_takes_both_ends_and_completes_what_is_half(
    anna: Client, db: None
) -> None:
    moments = {
        "before": datetime(2026, 3, 1, 23, 59, 59, 999_999, tzinfo=UTC),
        "start": datetime(2026, 3, 2, tzinfo=UTC),
        "noon": datetime(2026, 3, 2, 12, 0, 0, 500_000, tzinfo=UTC),
        "end": datetime(2026, 3, 2, 23, 59, 59, 999_999, tzinfo=UTC),
        "after": datetime(2026, 3, 3, tzinfo=UTC),
    }
    days = {str(rows.archived(finished_at=at)): name for name, at in moments.items()}

    def found(*typed: str) -> str:
        ends = zip(("gte_0", "gte_1", "lte_0", "lte_1"), typed, strict=True)
        page = units.listing(anna, "archivedjob", **{RANGE + k: v for k, v in ends})
        shown = " ".join(days[str(job.pk)] for job in reversed(page.result_list))
        return shown or page.notes.partition("is invalid: ")[2]

    cases = [
        ("2026-03-02", "", "2026-03-02", "", "start noon end"),
        ("2026-03-02", "", "", "", "start noon end after"),
        ("", "", "2026-03-01", "", "before"),
        ("2026-03-02", "12:00", "2026-03-02", "12:00:00", "noon"),
        ("2026-03-02", "12:00:01", "2026-03-03", "00:00", "end after"),
        ("", "", "", "", "before start noon end after"),
        ("2026-03-04", "", "", "", ""),
        ("", "12:00", "", "", "A time needs a date."),
        ("soon", "", "", "", "“soon” is not a date."),
        ("2026-02-30", "", "", "", "“2026-02-30” is not a date."),
        ("", "", "2026-03-02", "25:00", "“25:00” is not a time."),
        ("2026-03-03", "", "2026-03-02", "", "It ends before it begins."),
    ]
    assert differing(cases, found) == []
    with modify_settings(INSTALLED_APPS={"remove": "rangefilter"}):
        page = get(anna, list_of("archivedjob"), **{f"{RANGE}gte_0": "2026-03-03"})
    assert [days[id] for id in page.rows] == ["after"]


def test_ready_made_ranges_find_what_they_say(anna: Client, scene: Scene) -> None:
    def found(model: str, of: str) -> list[set[str]]:
        page = units.listing(anna, model)
        (one,) = [s for s in page.filter_specs if getattr(s, "selects", "") == of]
        links = [preset["link"] for preset in next(one.choices(page))["presets"]]
        return [{*units.shown(anna, model, **asked(link))} for link in links]

    ArchivedJob.objects.all().delete()
    now = timezone.now()
    old = str(rows.archived(finished_at=now - 2 * DAY))
    new = str(rows.archived(finished_at=now))
    of_archive = found("archivedjob", "finished")
    assert of_archive == [{new}, {new}, {new}, {new, old}, {new}, set()]
    QueuedJob.objects.filter(run_after__lt=now).update(run_after=now - DAY)
    waiting = {str(scene.queued[name]) for name in ("later", "retrying")}
    overdue = {*map(str, scene.queued.values())} - waiting
    assert found("queuedjob", "due") == [overdue, waiting, waiting, set()]


def without(client: Client, **query: str) -> dict[str, dict[str, str]]:
    """What a list is narrowed by, and what is left of its address without each."""
    chips = units.listing(client, "archivedjob", **query).active
    return {chip.value: asked(chip.without) for chip in chips}


def test_states_are_tabs_and_each_condition_can_be_taken_away(
    anna: Client, scene: Scene
) -> None:
    query = {
        "status": "failed",
        "queue": "default",
        f"{RANGE}gte_0": "2001-01-01",
        "q": 'error:ValueError type:"tests.sample.fail"',
    }
    since = "2001-01-01 00:00:00 UTC – "
    chips = without(anna, **query)
    terms = ["error:ValueError", 'type:"tests.sample.fail"']
    assert list(chips) == ["failed", "default", since, *terms]
    assert chips["failed"] == {k: v for k, v in query.items() if k != "status"}
    assert chips["default"] == {k: v for k, v in query.items() if k != "queue"}
    assert f"{RANGE}gte_0" not in chips[since]
    assert chips["error:ValueError"]["q"] == terms[1]
    assert without(anna) == {}
    assert without(anna, q='type:"x', priority="many") == {
        'type:"x': {"priority": "many"},
        "many": {"q": 'type:"x'},
    }

    listing = units.listing(anna, "archivedjob", **query)
    (queues,) = [one for one in listing.filter_specs if one.title == "queue"]
    assert list(queues.choices(listing))  # a form of one keeps the others
    assert {*dict(queues.others)} == {*query} - {"queue"}
    page = get(anna, list_of("archivedjob"), **query)
    labels = {str(one.get("aria-label")) for one in page.all("a")}
    assert {f"without {value.strip()}" for value in chips} <= {*map(str.strip, labels)}
    hidden = {(i["name"], i["value"]) for i in page.all("input", type="hidden")}
    assert set(query.items()) - {("q", query["q"])} <= hidden  # the box keeps them
    tabs = [one for one in page.all("a", **{"aria-current": "page"}) if one["href"]]
    assert query in [asked(str(tab["href"])) for tab in tabs]
    links = [link for link in page.links if "status=cancelled" in link]
    assert asked(links[0]) == query | {"status": "cancelled"}
    assert "By status" not in page.text
    assert "By failure group" not in page.text
    text = get(anna, list_of("archivedjob"), fingerprint=str(scene.group)).text
    assert "By failure group" in text


def test_what_runs_longest_comes_first_on_every_page(anna: Client, db: None) -> None:
    now, worker = timezone.now(), rows.worker()
    running: dict[str, Any] = {"status": "running", "attempts": 1, "worker_id": worker}
    made = [
        rows.queued_row(started_at=now - n // 2 * rows.MINUTE, **running)
        for n in range(120)
    ]
    ids = [str(pk) for pk in rows.insert_all(QueuedJob, made)]
    ordered = QueuedJob.objects.order_by("started_at", "pk")
    pages = [units.listing(anna, "queuedjob", state="running")]
    while pages[-1].has_older:
        pages.append(units.following(anna, "queuedjob", pages[-1].older_link))
    found = [[str(job.pk) for job in page.result_list] for page in pages]
    assert sum(found, []) == [str(job.pk) for job in ordered] != sorted(ids)
    back = units.following(anna, "queuedjob", pages[-1].newer_link)
    assert [str(job.pk) for job in back.result_list] == found[-2]
