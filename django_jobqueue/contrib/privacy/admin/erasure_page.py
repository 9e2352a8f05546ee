"""The page of an erasure: where the value stands, how far it is, and what was done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.base import REVEAL_DATA, may
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.work.work_progress import WorkProgress
from django_jobqueue.contrib.privacy import personal_data
from django_jobqueue.contrib.privacy.models import Erasure
from django_jobqueue.contrib.privacy.searched_tables import sources
from django_jobqueue.domain.states import WorkState
from django_jobqueue.store.personal_columns import QUEUED, RUNNING, Source
from django_jobqueue.text import numbers
from django_jobqueue.text.redaction import MASK

ERASE_DATA: Final = "jobqueue_privacy.erase_personal_data"
SHOWN: Final = 5


class Place(NamedTuple):
    """A table in which the value stands."""

    label: Any
    rows: str
    changed: str
    first: Sequence[tuple[str, str]]  # addresses and texts
    more: bool


@dataclass(slots=True)
class Progress(WorkProgress):
    """How far it is, and where the value stands."""

    places: Sequence[Place] = ()
    earlier: Sequence[tuple[str, str]] = ()


def progress_in_list(request: HttpRequest, erasure: Erasure) -> Progress:
    """How many of the rows are changed."""
    changed = sum(erasure.changed.values())
    return Progress(erasure, changed, erasure.total, sentence=_sentence(erasure))


def progress_of(request: HttpRequest, erasure: Erasure) -> Progress:
    """Read it."""
    progress = progress_in_list(request, erasure)
    progress.facts = _facts(request, progress)
    progress.places = _places(request, erasure)
    progress.earlier = _earlier(request, erasure)
    is_counted = not progress.is_draft or erasure.total is not None
    progress.is_busy = progress.is_active or not is_counted
    if progress.is_busy:
        progress.warn(request)
    progress.warning = progress.warning or _remaining(erasure)
    return progress


def value_for(request: HttpRequest, erasure: Erasure) -> str:
    """The value, for whoever typed it or may reveal data; a mask for all others."""
    is_own = erasure.created_by == request.user.get_username()
    return erasure.value if is_own or may(request, REVEAL_DATA) else MASK


def _sentence(erasure: Erasure) -> str:
    rows = sum(one["rows"] for one in erasure.counted.values())
    changed = sum(erasure.changed.values())
    counts = {
        "rows": numbers.number(rows),
        "examined": numbers.number(erasure.examined),
        "changed": numbers.number(changed),
    }
    if erasure.state != WorkState.DRAFT:
        text = ngettext(
            "%(changed)s row changed or deleted.",
            "%(changed)s rows changed or deleted.",
            changed,
        )
        return text % counts
    if erasure.total is None:
        text = gettext(
            "Searching: %(rows)s rows so far, among %(examined)s examined. The "
            "search continues in the background."
        )
        return text % counts
    text = gettext("All %(examined)s rows were searched: %(rows)s contain the value.")
    return text % counts


def all_places() -> dict[str, Source]:
    """The tables, by name; running jobs are told from those that wait."""
    named = {one.name: one for one in sources()}
    queued = named.pop(QUEUED)
    effect = _(
        "Running jobs are left alone. A worker waits for them and then continues; "
        "cancel them if that takes too long."
    )
    running = replace(queued, label=_("Running jobs"), effect=effect)
    return {QUEUED: queued, RUNNING: running, **named}


def _places(request: HttpRequest, erasure: Erasure) -> list[Place]:
    return [
        _place(request, erasure, name, source)
        for name, source in all_places().items()
        if name in erasure.counted or name in erasure.changed
    ]


def _place(request: HttpRequest, erasure: Erasure, name: str, source: Source) -> Place:
    counted = erasure.counted.get(name, {"rows": 0, "first": []})
    changed = erasure.changed.get(name)
    keys = counted["first"] if erasure.state == WorkState.DRAFT else []
    linked = [
        (address, _short(key))
        for key in keys[:SHOWN]
        if (address := _address(request, source, key))
    ]
    return Place(
        label=source.label,
        rows=numbers.number(counted["rows"]),
        changed="" if changed is None else numbers.number(changed),
        first=linked,
        more=bool(linked) and counted["rows"] > SHOWN,
    )


def _address(request: HttpRequest, source: Source, key: str) -> str:
    """Where the row is shown; empty if this user may not see it."""
    if source.is_of_jobs:
        sees = may(request, "view_queuedjob") or may(request, "view_archivedjob")
        return reverse("admin:jobqueue_job", args=[key]) if sees else ""
    label, dot, model = source.page.rpartition(".")
    sees = bool(model) and may(request, f"{label}{dot}view_{model}")
    return display.url_of(source.page, key) if sees else ""


def _short(key: str) -> str:
    try:
        return display.short_id(UUID(key))
    except ValueError:  # a name
        return display.visible(key)


def _facts(request: HttpRequest, progress: Progress) -> list[tuple[Any, Any]]:
    erasure = progress.row
    facts: list[tuple[Any, Any]] = []
    if erasure.value and may(request, ERASE_DATA):
        facts.append((_("Value"), display.shown_text(value_for(request, erasure))))
    if erasure.key:
        facts.append((_("Key"), display.visible(erasure.key)))
    facts += [
        (_("Act"), erasure.get_act_display() or display.NOTHING),
        (_("By"), display.visible(erasure.created_by) or display.NOTHING),
        (_("Reason"), display.shown_text(erasure.reason) or display.NOTHING),
        (_("Fingerprint"), display.visible(erasure.fingerprint[:16])),
        (_("Created"), display.full_moment(erasure.created_at)),
    ]
    if erasure.passes:
        facts.append((_("Passes"), numbers.number(erasure.passes)))
    return facts + progress.times()


def _earlier(request: HttpRequest, erasure: Erasure) -> list[tuple[str, str]]:
    """Earlier erasures of the same value."""
    if erasure.state != WorkState.DRAFT or not may(request, ERASE_DATA):
        return []
    return [
        (display.url_of("jobqueue_privacy.erasure", one.id), _done(one))
        for one in personal_data.earlier(erasure.value)
        if one.id != erasure.pk
    ]


def _done(one: Any) -> str:
    row = Erasure(act=one.act, state=one.state)
    parts = [row.get_act_display(), row.get_state_display()]
    if one.finished_at:
        parts.append(display.exact(one.finished_at))
    return " · ".join(map(str, [*parts, display.visible(one.created_by)]))


def _remaining(erasure: Erasure) -> str:
    """The rows that it could not change, in words."""
    return " ".join(filter(None, (_refused(erasure), _left(erasure))))


def _refused(erasure: Erasure) -> str:
    refused = erasure.remaining.get("refused", 0)
    text = ngettext(
        "%(count)s row contains the value: the database refused to change it; see the "
        "log.",
        "%(count)s rows contain the value: the database refused to change them; see "
        "the log.",
        refused,
    )
    return text % {"count": numbers.number(refused)} if refused else ""


def _left(erasure: Erasure) -> str:
    if running := erasure.remaining.get("running"):
        text = ngettext(
            "%(count)s running job had the value when it was last checked.",
            "%(count)s running jobs had the value when they were last checked.",
            running,
        )
        if erasure.state == WorkState.DONE:
            text += " " + gettext("Repeat this when they have ended.")
        return text % {"count": numbers.number(running)}
    if erasure.remaining.get("written_again"):
        return gettext(
            "The value keeps being written. Stop the code that writes it, and repeat "
            "this."
        )
    return ""
