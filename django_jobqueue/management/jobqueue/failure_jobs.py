"""The jobs of failure groups: bulk operations, as the buttons of the admin's page."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandError

from django_jobqueue.conf import conf
from django_jobqueue.domain.states import ArchivedStatus
from django_jobqueue.management.jobqueue import cancel, many_jobs, prune, replay
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.models import FailureGroup
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.stats.group_states import STATES

REPLAY: Final = ("replay",)
JOB_VERBS: Final = ("replay", "cancel", "prune")
# Flags that go with some of these verbs alone, by their destination.
ONLY_WITH: Final[Mapping[str, Sequence[str]]] = {
    **dict.fromkeys(
        (
            *("resolve", "skip_replayed", "at_most_once", "expires", "run_after"),
            *("queue", "priority"),
        ),
        REPLAY,
    ),
    "reason": ("cancel",),
    "dry_run": JOB_VERBS,
    "yes": JOB_VERBS,
}


def add_arguments(parser: ArgumentParser) -> None:
    """Add how they are replayed, and whether to ask."""
    group = parser.add_argument_group("the jobs of groups")
    many_jobs.add_dry_run(group)
    many_jobs.add_yes(group)
    group.add_argument(
        "--resolve",
        action="store_true",
        help="Of replay: resolve the group, too, when the replay starts.",
    )
    group.add_argument("--reason", help="Of cancel: kept with the jobs in the archive.")
    replay.add_skips(parser.add_argument_group("what a replay leaves out"))
    replay.add_how(parser.add_argument_group("the new jobs of a replay"))
    # So that the flags that were given can be told from those that were not.
    parser.set_defaults(skip_replayed=None, expires=None)


def change(
    verb: str, keys: Sequence[UUID], console: Console, options: dict[str, Any]
) -> None:
    """Replay the failed jobs of these groups, cancel the waiting ones, or delete the
    archived ones. Raises CommandError."""
    _CHANGES[verb](keys, console, options)


def _replay(keys: Sequence[UUID], console: Console, options: dict[str, Any]) -> None:
    given = {
        **options,
        "skip_replayed": options["skip_replayed"] or replay.SKIP_REPLAYED,
        "expires": options["expires"] or replay.EXPIRES,
    }
    more: dict[str, Any] = {}
    if options["resolve"]:
        if len(keys) > 1:
            raise CommandError("--resolve goes with one failure group.")
        more["resolves"] = keys[0]
    failed = Term("status", ArchivedStatus.FAILED.value)
    selection = Selection(Table.ARCHIVED, (_groups(keys), failed))
    replay.replay_selected(console, given, selection, database_now(), **more)
    if options["resolve"] and not options["dry_run"] and not _is_resolved(keys[0]):
        console.warn("The group is not resolved, since no job was replayed.")


def _is_resolved(key: UUID) -> bool:
    groups = FailureGroup.objects.using(conf.database)
    return groups.filter(STATES["resolved"], pk=key).exists()


def _cancel(keys: Sequence[UUID], console: Console, options: dict[str, Any]) -> None:
    given = {**options, "reason": options["reason"] or ""}
    cancel.cancel_selected(console, given, Selection(Table.QUEUED, (_groups(keys),)))


def _prune(keys: Sequence[UUID], console: Console, options: dict[str, Any]) -> None:
    prune.prune_selected(console, options, Selection(Table.ARCHIVED, (_groups(keys),)))


def _groups(keys: Sequence[UUID]) -> Term:
    """One group has a term of its own, which an index serves."""
    if len(keys) == 1:
        return Term("group", keys[0])
    return Term("groups", tuple(keys))


_CHANGES: Final[
    Mapping[str, Callable[[Sequence[UUID], Console, dict[str, Any]], None]]
] = {"replay": _replay, "cancel": _cancel, "prune": _prune}
