"""Replay selected jobs: each becomes a new job that remembers the old one."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final
from uuid import UUID

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import (
    ActionForm,
    ConfirmedAction,
    Done,
    Question,
    Rows,
    left_out,
    with_reason,
)
from django_jobqueue.admin.jobs.related_jobs import replays_of
from django_jobqueue.admin.jobs.replay_options import ReplayOptions, options_of
from django_jobqueue.admin.lists.selected import matching
from django_jobqueue.admin.parts import catalogue
from django_jobqueue.admin.parts.display import names
from django_jobqueue.domain.states import ArchivedStatus, BulkKind, SkipReplayed
from django_jobqueue.models import ArchivedJob
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.text import numbers

# By whether the box is ticked.
SKIPS: Final = {True: SkipReplayed.ANY, False: SkipReplayed.NONE}


class ReplayForm(ActionForm, ReplayOptions):
    """How to replay, and what to leave out."""

    # The newest replay of these when the page asked: what was replayed since, by a
    # second click or by somebody else, is left out in any case.
    newest = forms.UUIDField(required=False, widget=forms.HiddenInput)
    skip_replayed = forms.BooleanField(
        label=_("Skip jobs that were already replayed"), required=False, initial=True
    )
    skip_at_most_once = forms.BooleanField(
        label=_("Skip jobs of at-most-once types"), required=False, initial=True
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.offer_queues(self.request)
        self.offer_expiry(any(row.expires_at for row in self.rows))
        before = replays_of([row.pk for row in self.rows])
        self.fields["newest"].initial = before[0][1] if before else None
        if not replayed(self.rows):
            del self.fields["skip_replayed"]
        if not catalogue.at_most_once(self.request, self.rows):
            del self.fields["skip_at_most_once"]


class ReplayJobs(ConfirmedAction):
    """Enqueue archived jobs again."""

    name = "replay"
    menu_label = _("Replay selected %(verbose_name_plural)s")
    label = _("Replay")
    rights = ("replay_archivedjob",)
    bulk_action = BulkKind.REPLAY
    form_class = ReplayForm

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """The jobs, and facts to know before."""
        text = ngettext("Replay %(count)s job?", "Replay %(count)s jobs?", len(rows))
        return Question(
            text % {"count": numbers.number(len(rows))},
            [_by_status(rows), *_repeats(rows)],
            [
                *_once_only(request, rows),
                *_paused(request, rows),
                *_gone(request, rows),
            ],
        )

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Replay what was not left out."""
        _lock(rows)
        meanwhile = _replayed_since(rows, cleaned["newest"])
        made = operations.replay_many(
            [row.pk for row in rows if row.pk not in meanwhile],
            skip_replayed=SKIPS[bool(cleaned.get("skip_replayed"))],
            skip_at_most_once=bool(cleaned.get("skip_at_most_once")),
            by=request.user.get_username(),
            **options_of(cleaned),
        )
        why = Counter(made.left_out.values())
        skipped = why["replayed"] + why["at_most_once"] + len(meanwhile)
        text = ngettext(
            "%(count)s job was replayed.", "%(count)s jobs were replayed.", len(made)
        )
        return Done(
            text % {"count": numbers.number(len(made))} if made else "",
            [
                *_skipped(why["replayed"], why["at_most_once"]),
                *_meanwhile(len(meanwhile)),
                *left_out(len(rows) - skipped, len(made)),
            ],
            [row for row in rows if row.pk in made],
            with_reason(gettext("Replayed."), cleaned["reason"]),
        )


def replayed(rows: Rows) -> set[Any]:
    """The ids of those that count as replayed, as a search and a bulk operation do."""
    ids = tuple(row.pk for row in rows)
    chosen = Selection(Table.ARCHIVED, (Term("id", ids), Term("replayed", True)))
    jobs = matching(ArchivedJob.objects.order_by(), chosen)
    return set(jobs.values_list("pk", flat=True))


def _replayed_since(rows: Rows, newest: UUID | None) -> set[Any]:
    """The ids of those that were replayed after this replay, whatever came of it: ids
    have a time."""
    replays = replays_of([row.pk for row in rows])
    return {
        original for original, id, *columns in replays if newest is None or id > newest
    }


def _by_status(rows: Rows) -> str:
    counts = Counter(row.status for row in rows)
    parts = [
        f"{numbers.number(count)} {ArchivedStatus(status).label}"
        for status, count in sorted(counts.items())
    ]
    return f"{', '.join(parts)}."


def _repeats(rows: Rows) -> list[str]:
    count = len(replayed(rows))
    if not count:
        return []
    text = ngettext(
        "%(count)s was replayed before.", "%(count)s were replayed before.", count
    )
    return [text % {"count": numbers.number(count)}]


def _once_only(request: HttpRequest, rows: Rows) -> list[str]:
    count = len(catalogue.at_most_once(request, rows))
    if not count:
        return []
    text = ngettext(
        "%(count)s belongs to an at-most-once type: its first run may have taken "
        "effect.",
        "%(count)s belong to at-most-once types: their first runs may have taken "
        "effect.",
        count,
    )
    return [text % {"count": numbers.number(count)}]


def _paused(request: HttpRequest, rows: Rows) -> list[str]:
    types = catalogue.job_types(request, {row.job_type_id for row in rows})
    paused = [name for name in sorted(types) if catalogue.is_paused(types[name])]
    if not paused:
        return []
    text = gettext("Paused, so that the new jobs will wait: %(names)s.")
    return [text % {"names": names(paused)}]


def _gone(request: HttpRequest, rows: Rows) -> list[str]:
    types = catalogue.job_types(request, {row.job_type_id for row in rows})
    count = sum(row.job_type_id not in types for row in rows)
    if not count:
        return []
    text = ngettext(
        "%(count)s cannot be replayed, because its job type is gone.",
        "%(count)s cannot be replayed, because their job types are gone.",
        count,
    )
    return [text % {"count": numbers.number(count)}]


def _lock(rows: Rows) -> None:
    """Let nobody else replay these from here before this transaction ends."""
    keys = [row.pk for row in rows]
    list(
        ArchivedJob.objects.select_for_update()
        .filter(pk__in=keys)
        .order_by("pk")
        .values_list("pk", flat=True)
    )


def _meanwhile(count: int) -> list[str]:
    if not count:
        return []
    text = ngettext(
        "%(count)s was skipped: it was replayed meanwhile.",
        "%(count)s were skipped: they were replayed meanwhile.",
        count,
    )
    return [text % {"count": numbers.number(count)}]


def _skipped(before: int, once: int) -> list[str]:
    """Why some were left out."""
    texts = (
        (
            before,
            ngettext(
                "%(count)s was skipped: already replayed.",
                "%(count)s were skipped: already replayed.",
                before,
            ),
        ),
        (
            once,
            ngettext(
                "%(count)s was skipped: of an at-most-once type.",
                "%(count)s were skipped: of at-most-once types.",
                once,
            ),
        ),
    )
    return [text % {"count": numbers.number(count)} for count, text in texts if count]
