"""Selections in the words of people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.parts import display
from django_jobqueue.search.hidden_values import SensitiveKeys, shown_value
from django_jobqueue.search.selection import FIELDS, Selection, Table, Term, ValueType
from django_jobqueue.text import numbers
from django_jobqueue.text.redaction import MASK

MOST_IDS: Final = 3  # named; of others the number

_NAMES: Final = {
    "type": _("type"),
    "queue": _("queue"),
    "priority": _("priority"),
    "attempts": _("attempts"),
    "worker": _("worker"),
    "error": _("error"),
    "by": _("enqueued by"),
    "replay-of": _("replay of"),
    "operation": _("made by bulk operation"),
    "created": _("created"),
    "due": _("due"),
    "started": _("started"),
    "tag": _("tag"),
    "text": _("text"),
    "state": _("state"),
    "status": _("status"),
    "finished": _("finished"),
    "ran": _("ran"),
    "waited": _("waited"),
    "release": _("release"),
    "group": _("failure group"),
}
_EACH: Final = {"statuses": "status", "types": "type", "queues": "queue"}
_STATES: Final = {
    "ready": _("ready"),
    "later": _("later"),
    "retrying": _("retrying"),
    "running": _("running"),
    "cancelling": _("cancelling"),
    "lapsed": _("lapsed"),
    "succeeded": _("succeeded"),
    "failed": _("failed"),
    "expired": _("expired"),
    "cancelled": _("cancelled"),
}
_PATTERNS: Final = {
    "=": _("%(name)s: %(value)s"),
    "<": _("%(name)s below %(value)s"),
    "<=": _("%(name)s at most %(value)s"),
    ">": _("%(name)s above %(value)s"),
    ">=": _("%(name)s at least %(value)s"),
}
_MOMENTS: Final = {
    "=": _("%(name)s at %(value)s"),
    "<": _("%(name)s before %(value)s"),
    "<=": _("%(name)s until %(value)s"),
    ">": _("%(name)s after %(value)s"),
    ">=": _("%(name)s from %(value)s on"),
}


def in_words(
    selection: Selection,
    *,
    sensitive: SensitiveKeys | None = None,
    groups: Mapping[UUID, str] | None = None,
) -> str:
    """The whole of it in a line: "status: failed · type: shop.charge". Plain text, to
    be escaped like any other. For who may see data ``sensitive`` tells the keys of
    secrets, else all its values are masked; ``groups`` are the names of failure groups.
    """
    if selection.nothing:
        return gettext("no jobs, because a filter is invalid")
    if not selection.terms:
        if selection.table is Table.ARCHIVED:
            return gettext("all archived jobs")
        return gettext("all queued jobs")
    return " · ".join(phrases(selection, sensitive=sensitive, groups=groups))


def phrases(
    selection: Selection,
    *,
    sensitive: SensitiveKeys | None = None,
    groups: Mapping[UUID, str] | None = None,
) -> list[str]:
    """Each of its terms, in words."""
    return [
        phrase(term, sensitive=sensitive, groups=groups) for term in selection.terms
    ]


def phrase(
    term: Term,
    *,
    sensitive: SensitiveKeys | None = None,
    groups: Mapping[UUID, str] | None = None,
) -> str:
    """One condition in words: "finished before 2026-11-21 10:00:00 UTC"."""
    value_type = FIELDS[term.field].value_type
    if term.field == "group" and groups and term.value in groups:
        term = term._replace(value=groups[term.value])
    if term.field == "groups":
        return _groups(len(term.value))
    if value_type is ValueType.IDS:
        return _ids(term.value)
    if value_type is ValueType.TEXTS:
        return " / ".join(phrase(Term(_EACH[term.field], v)) for v in term.value)
    if value_type is ValueType.FLAG:
        return gettext("replayed") if term.value else gettext("not replayed")
    patterns = _MOMENTS if value_type is ValueType.MOMENT else _PATTERNS
    if value_type is ValueType.JSON:
        name = display.shown_text(".".join((term.field, *term.path)))
    else:
        name = str(_NAMES[term.field])
    if value_type is ValueType.JSON:
        value = _data_value(term, sensitive)
    else:
        value = _value(shown_value(term, sensitive), term.field, value_type)
    return str(patterns[term.operator]) % {"name": name, "value": value}


def _ids(ids: tuple[Any, ...]) -> str:
    if len(ids) > MOST_IDS:
        return gettext("%(count)s jobs by their ids") % {
            "count": numbers.number(len(ids))
        }
    return gettext("id: %(ids)s") % {"ids": display.names(ids)}


def _groups(count: int) -> str:
    text = ngettext("%(count)s failure group", "%(count)s failure groups", count)
    return text % {"count": numbers.number(count)}


def _data_value(term: Term, sensitive: SensitiveKeys | None) -> str:
    if sensitive is None:
        return MASK
    shown = shown_value(term, sensitive)
    text = json.dumps(shown, ensure_ascii=False, default=str)
    return display.shown_text(text, display.CELL)


def _value(value: Any, field: str, value_type: ValueType) -> str:
    if isinstance(value, datetime):
        return display.exact(value)
    if value_type is ValueType.MILLISECONDS:
        return numbers.duration(value)
    if field in ("state", "status"):
        return str(_STATES.get(value, value))
    return display.shown_text(str(value), display.CELL)
