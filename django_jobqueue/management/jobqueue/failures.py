"""``jobqueue failures``: failure groups, what is decided about them, and their jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandError

from django_jobqueue.conf import conf
from django_jobqueue.domain.states import ArchivedStatus, ReplayExpiry, SkipReplayed
from django_jobqueue.management.jobqueue import many_jobs, prune, replay
from django_jobqueue.management.jobqueue.console import Console, were
from django_jobqueue.management.jobqueue.failure_groups import (
    GROUPS,
    key_of,
    show,
    with_figures,
)
from django_jobqueue.management.jobqueue.inputs import values_of
from django_jobqueue.management.jobqueue.job_verbs import CANCEL
from django_jobqueue.management.jobqueue.subcommand import (
    YES,
    Options,
    SubcommandWithVerbs,
    Words,
    by,
    no_words,
    sentences,
)
from django_jobqueue.models import FailureGroup
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.stats.group_states import STATES
from django_jobqueue.verbs import failure_groups, jobs
from django_jobqueue.verbs.declarations import Argument, Takes, Verb, flag, group, only

JOBS: Final = "the jobs of groups"
ALL: Final = "all"
OF_REPLAY: Final = {
    "what is left out": "what a replay leaves out",
    "the new jobs": "the new jobs of a replay",
}
JOB_VERBS: Final = ("replay", "cancel", "prune")


class Failures(SubcommandWithVerbs):
    name = "failures"
    summary = "List and triage failure groups; replay their jobs."
    verbs = ("list", "show", *failure_groups.VERBS, *JOB_VERBS)
    wanted = "GROUP ..."
    description = f"""\
List failure groups, the latest first, or

  show     one of them: where it occurs, how often, and its newest traceback
{sentences(failure_groups.VERBS.values(), 7)}

or change its jobs, by a bulk operation as in the admin, that this command runs:

  replay   enqueue its failed jobs again; --resolve also resolves the group.
           Jobs that were replayed before are left out (see --again), and so
           are those of at-most-once types (see --at-most-once)
  cancel   cancel its jobs that wait for another attempt
  prune    delete its archived jobs

A group is named by its fingerprint, or by the beginning of it that the list
shows.

  jobqueue failures
  jobqueue failures show 5f1c9a04
  jobqueue failures resolve 5f1c9a04 --in-release 2026.11
  jobqueue failures ignore 5f1c9a04 --until 7d
  jobqueue failures replay 5f1c9a04 77ab03c1 --dry-run

To replay a part of its jobs: jobqueue replay --where "group:5f1c9a04 …"."""
    json = f"""a list of {GROUPS.keys}; "show" prints one such object with notes,
    changed_by, changed_at, breakdown (a list of {{job_type, queue, worker, release,
    failures}}) and newest ({{job_id, finished_at, error_message, traceback}}), which
    may be null. Of replay, cancel and prune: one object, with the keys that jobqueue
    replay has."""
    arguments = (
        *only(
            "list",
            Argument(
                "state",
                "List groups in this state (default: open, regressed ones included).",
                choices=(*STATES, ALL),
            ),
            Argument("limit", "List at most N groups (default: 20).", Takes.POSITIVE),
        ),
        *(
            argument._replace(only=verb.name, default=None)
            for verb in failure_groups.VERBS.values()
            for argument in verb.arguments
        ),
        *only(" ".join(JOB_VERBS), *group(JOBS, (many_jobs.DRY_RUN, YES))),
        *group(
            JOBS,
            (
                flag(
                    "resolve",
                    "Of replay: resolve the group, too, when the replay starts.",
                    only="replay",
                ),
                Argument(
                    "reason",
                    "Of cancel: stored with the jobs in the archive.",
                    only="cancel",
                ),
            ),
        ),
        # Without defaults, so that the flags that were given can be told from others.
        *(
            argument._replace(
                only="replay", default=None, group=OF_REPLAY[argument.group]
            )
            for argument in jobs.REPLAY.arguments
        ),
    )

    def do(self, verb: str, words: Words, console: Console, options: Options) -> None:
        if verb == "list":
            no_words(words)
            _list(console, options)
            return
        if not words:
            raise CommandError(f"Name the groups to {verb} by their fingerprints.")
        keys = list(dict.fromkeys(map(key_of, words)))
        if verb in JOB_VERBS:
            _CHANGES[verb](keys, console, options)
        elif verb == "show":
            show(console, keys)
        else:
            _decide(failure_groups.VERBS[verb], keys, console, options)


def _list(console: Console, options: Options) -> None:
    groups = FailureGroup.objects.using(conf.database)
    state = options["state"] or "open"
    if state != ALL:
        groups = groups.filter(STATES[state])
    newest = groups.order_by("-last_seen", "-fingerprint")[: options["limit"] or 20]
    console.rows(GROUPS, with_figures(list(newest)))


def _decide(verb: Verb, keys: list[UUID], console: Console, options: Options) -> None:
    how = values_of(verb.arguments, options, database_now())
    changed = verb.function(keys, by=by(), **how)
    if console.is_json:
        groups = FailureGroup.objects.using(conf.database).filter(pk__in=keys)
        console.rows(GROUPS, with_figures(list(groups)))
        return
    if changed:
        console.info(f"{were(len(changed), verb.on, verb.done)}.")
    for key in keys:
        if key not in changed:
            why = verb.not_done or "changed meanwhile"
            console.warn(f"Failure group {key} {why}.")


def _replay(keys: Sequence[UUID], console: Console, options: Options) -> None:
    given = {
        **options,
        "skip_replayed": options["skip_replayed"] or SkipReplayed.ANY.value,
        "expires": options["expires"] or ReplayExpiry.SAME.value,
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
        console.warn("The group is not resolved, because no job was replayed.")


def _is_resolved(key: UUID) -> bool:
    groups = FailureGroup.objects.using(conf.database)
    return groups.filter(STATES["resolved"], pk=key).exists()


def _cancel(keys: Sequence[UUID], console: Console, options: Options) -> None:
    chosen = Selection(Table.QUEUED, (_groups(keys),))
    CANCEL.as_operation(console, options, chosen, reason=options["reason"] or "")


def _prune(keys: Sequence[UUID], console: Console, options: Options) -> None:
    prune.prune_selected(console, options, Selection(Table.ARCHIVED, (_groups(keys),)))


def _groups(keys: Sequence[UUID]) -> Term:
    """One group has a term of its own, which an index serves."""
    if len(keys) == 1:
        return Term("group", keys[0])
    return Term("groups", tuple(keys))


_CHANGES: Final = {"replay": _replay, "cancel": _cancel, "prune": _prune}
