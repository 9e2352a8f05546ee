"""Failure groups as an operator sees them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.core.management.base import CommandError

from django_jobqueue.conf import conf
from django_jobqueue.management.jobqueue.console import (
    Console,
    lines_of,
    listed,
    moment_text,
)
from django_jobqueue.models import Failure, FailureGroup
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.stats.group_states import state_now
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import failure_stats
from django_jobqueue.store.reading.failure_stats import MOST_COUNTED, Figures
from django_jobqueue.text import numbers
from django_jobqueue.text.redaction import mask_text
from django_jobqueue.verbs.columns import (
    NAMES,
    NUMBER,
    SPAN,
    Column,
    Listing,
    Type,
    only_json,
)

SHORT: Final = 8  # digits of a fingerprint that a list shows
SHORTEST: Final = 4  # digits that name one
MOST_SHARES: Final = 10


def _archived(count: int) -> str:
    return numbers.at_least(count, MOST_COUNTED)


class Group(NamedTuple):
    """A group, and its figures."""

    row: FailureGroup
    figures: Figures


def _ago(one: Group) -> float:
    return (database_now() - one.row.last_seen).total_seconds()


ARCHIVED: Final = Type(_archived, right=True)
SHORTENED: Final = Type(lambda fingerprint: fingerprint.hex[:SHORT])
GROUPS: Final = Listing(
    (
        Column("fingerprint", "Group", SHORTENED, "row.pk"),
        Column("state", "State", value=lambda one: state_now(one.row)),
        Column("", "Jobs", ARCHIVED, "figures.archived"),
        Column("", "Waiting", NUMBER, "figures.waiting"),
        Column("", "Last ago", SPAN, _ago),
        Column("error_class", "Exception", value="row.error_class", breaks=True),
        Column("message", "Message", value="row.template", cut=True),
        Column("place", value="row.frame"),
        *only_json("first_seen last_seen", "row"),
        Column("archived", "", NUMBER, "figures.archived", "jobs; at most 1001"),
        *only_json("waiting", "figures"),
        Column("job_types", "Job types", NAMES, "figures.job_types", breaks=True),
        *only_json("releases", "figures"),
        *only_json(
            "assignee resolved_in resolved_at regressed_at ignored_until", "row"
        ),
    ),
    "No failure groups.",
)


def key_of(text: str) -> UUID:
    """The fingerprint of the group that begins so. Raises CommandError if none does, or
    several."""
    digits = text.replace("-", "").lower()
    is_hex = all(digit in "0123456789abcdef" for digit in digits)
    if not SHORTEST <= len(digits) <= 32 or not is_hex:
        raise CommandError(
            f"{text!r} is not a fingerprint: give it, or its first {SHORTEST} or more "
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


def show(console: Console, keys: Sequence[UUID]) -> None:
    """Print all there is to know of one group. Raises CommandError for several."""
    if len(keys) > 1:
        raise CommandError("show shows one failure group.")
    group = FailureGroup.objects.using(conf.database).get(pk=keys[0])
    one = {**GROUPS.as_object(with_figures([group])[0]), **_details(group)}
    if console.is_json:
        console.json(one)
        return
    console.facts(_facts(one))
    names = ("job_type", "queue", "worker", "release")
    shares = one["breakdown"][:MOST_SHARES]
    rows = ([f"{s['failures']:>5}", *(s[name] for name in names)] for s in shares)
    console.section("Newest failures, by what they share", lines_of(rows))
    console.section("Notes", one["notes"])
    newest = one["newest"]
    if newest is not None:
        title = f"Newest: job {newest['job_id']}, {moment_text(newest['finished_at'])}"
        console.section(title, newest["traceback"] or newest["error_message"])


def with_figures(groups: Sequence[FailureGroup]) -> list[Group]:
    """Groups with their figures, in their order."""
    keys = [group.pk for group in groups]
    figures = failure_stats.figures(DjangoDatabase(), keys) if keys else {}
    return [Group(group, figures[group.pk]) for group in groups]


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
    yield "Job types", listed(one["job_types"])
    yield "Releases", listed(one["releases"])
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
