"""Failure groups as an operator sees them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandError

from django_jobqueue.conf import conf
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.detail_page import (
    as_json,
    lines_of,
    moment_text,
    print_facts,
    print_text,
)
from django_jobqueue.management.jobqueue.detail_page import (
    listed as in_one_line,
)
from django_jobqueue.management.jobqueue.text_tables import Column, Row
from django_jobqueue.models import Failure, FailureGroup
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.stats.group_states import state_now
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import failure_stats
from django_jobqueue.store.reading.failure_stats import MOST_COUNTED, Figures
from django_jobqueue.text import numbers
from django_jobqueue.text.redaction import mask_text

SHORT: Final = 8  # digits of a fingerprint that a list shows
SHORTEST: Final = 4  # digits that name one
MOST_SHARES: Final = 10
COLUMNS: Final = (
    Column("Group"),
    Column("State"),
    Column("Jobs", right=True),
    Column("Waiting", right=True),
    Column("Last ago", right=True),
    Column("Exception", breaks=True),
    Column("Message", cut=True),
    Column("Job types", breaks=True),
)


def key_of(text: str) -> UUID:
    """The fingerprint of the group that begins so. Raises CommandError if none does, or
    several."""
    digits = text.replace("-", "").lower()
    is_hex = all(digit in "0123456789abcdef" for digit in digits)
    if not SHORTEST <= len(digits) <= 32 or not is_hex:
        raise CommandError(
            f"{text!r} is no fingerprint: give it, or its first {SHORTEST} or more "
            "digits."
        )
    first, last = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
    groups = FailureGroup.objects.using(conf.database)
    matching = groups.filter(pk__gte=first, pk__lte=last).order_by("pk")
    keys = list(matching.values_list("pk", flat=True)[:3])
    if len(keys) == 1:
        return keys[0]
    if not keys:
        raise CommandError(f"There is no failure group {text!r}.")
    raise CommandError(
        f"Several failure groups begin with {text!r}, such as {keys[0]} and {keys[1]}."
    )


def listed(
    console: Console, options: dict[str, Any], groups: list[FailureGroup]
) -> None:
    """Print these groups."""
    objects = as_objects(groups)
    if options["format"] == "json":
        console.print(as_json(objects))
        return
    if not objects:
        console.print("No failure groups.")
        return
    now = database_now()
    rows = []
    for one in objects:
        ago = numbers.span((now - one["last_seen"]).total_seconds())
        rows.append(Row(_cells(one, ago)))
    console.table(COLUMNS, rows)


def show(console: Console, options: dict[str, Any], keys: Sequence[UUID]) -> None:
    """Print all there is to know of one group. Raises CommandError for several."""
    if len(keys) > 1:
        raise CommandError("show shows one failure group.")
    group = FailureGroup.objects.using(conf.database).get(pk=keys[0])
    one = {**as_objects([group])[0], **_details(group)}
    if options["format"] == "json":
        console.print(as_json(one))
        return
    print_facts(console, _facts(one))
    shares = one["breakdown"][:MOST_SHARES]
    rows = ([f"{s['failures']:>5}", *_share(s)] for s in shares)
    print_text(console, "Newest failures, by what they share", _lines(rows))
    print_text(console, "Notes", one["notes"])
    newest = one["newest"]
    if newest is not None:
        title = f"Newest: job {newest['job_id']}, {moment_text(newest['finished_at'])}"
        print_text(console, title, newest["traceback"] or newest["error_message"])


def as_objects(groups: Sequence[FailureGroup]) -> list[dict[str, Any]]:
    """Groups with their figures, in their order; the keys are stable."""
    keys = [group.pk for group in groups]
    figures = failure_stats.figures(DjangoDatabase(), keys) if keys else {}
    return [_as_object(group, figures[group.pk]) for group in groups]


def _as_object(group: FailureGroup, figures: Figures) -> dict[str, Any]:
    return {
        "fingerprint": group.pk,
        "state": state_now(group),
        "error_class": group.error_class,
        "message": group.template,
        "place": group.frame,
        "first_seen": group.first_seen,
        "last_seen": group.last_seen,
        "archived": figures.archived,
        "waiting": figures.waiting,
        "job_types": list(figures.job_types),
        "releases": list(figures.releases),
        "assignee": group.assignee,
        "resolved_in": group.resolved_in,
        "resolved_at": group.resolved_at,
        "regressed_at": group.regressed_at,
        "ignored_until": group.ignored_until,
    }


def _details(group: FailureGroup) -> dict[str, Any]:
    shares = failure_stats.break_down(DjangoDatabase(), group.pk)
    shares.sort(key=lambda share: -share.failures)
    names = ("job_type", "queue", "worker", "release", "failures")
    newest = (
        Failure.objects.using(conf.database)
        .filter(fingerprint=group.pk)
        .order_by("-finished_at")
        .values("job_id", "finished_at", "error_message", "traceback")
        .first()
    )
    if newest is not None:  # what its job's secrets are was masked when it was kept
        for name in ("error_message", "traceback"):
            newest[name] = mask_text(newest[name])
    return {
        "notes": group.notes,
        "changed_by": group.changed_by,
        "changed_at": group.changed_at,
        "breakdown": [{n: getattr(share, n) for n in names} for share in shares],
        "newest": newest,
    }


def _facts(one: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "Failure group", str(one["fingerprint"])
    yield "State", _state(one)
    yield "Exception", one["error_class"]
    yield "Message", one["message"]
    yield "Place", one["place"]
    yield "Archived jobs", _archived(one["archived"])
    yield "Waiting jobs", numbers.number(one["waiting"])
    yield "Job types", in_one_line(one["job_types"])
    yield "Releases", in_one_line(one["releases"])
    yield "First seen", moment_text(one["first_seen"])
    yield "Last seen", moment_text(one["last_seen"])
    yield "Assignee", one["assignee"]
    yield "Changed", moment_text(one["changed_at"])
    yield "Changed by", one["changed_by"]


def _state(one: dict[str, Any]) -> str:
    match one["state"]:
        case "resolved" if one["resolved_in"]:
            return f"resolved in {one['resolved_in']}"
        case "ignored" if one["ignored_until"]:
            return f"ignored until {moment_text(one['ignored_until'])}"
        case "regressed":
            return f"regressed {moment_text(one['regressed_at'])}"
        case state:
            return str(state)


def _cells(one: dict[str, Any], ago: str) -> list[str]:
    return [
        one["fingerprint"].hex[:SHORT],
        one["state"],
        _archived(one["archived"]),
        numbers.number(one["waiting"]),
        ago,
        one["error_class"],
        one["message"] or "-",
        in_one_line(one["job_types"]) or "-",
    ]


def _archived(count: int) -> str:
    return numbers.at_least(count, MOST_COUNTED)


def _share(share: dict[str, Any]) -> list[str]:
    return [share["job_type"], share["queue"], share["worker"], share["release"]]


def _lines(rows: Any) -> str:
    return "\n".join(lines_of(rows))
