"""The changes that an edit makes, key by key, without secrets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_jobqueue.admin.jobs.locked_data import LockedData, leaves, path_text
from django_jobqueue.admin.parts.display import visible
from django_jobqueue.admin.parts.json_text import scalar
from django_jobqueue.text import numbers

MOST: Final = 100  # changes shown
LONGEST: Final = 200  # characters shown of a value
MOST_WRITTEN: Final = 20  # keys in the history
LONGEST_WRITTEN: Final = 60  # characters of a key
MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Change:
    """One place: what was there and what will be; empty for nothing. ``key`` is the key
    of the data that the place is in."""

    where: str
    before: str
    after: str
    key: str

    @property
    def kind(self) -> str:
        """Whether it is added, removed or changed."""
        if not self.before:
            return _("added")
        return _("changed") if self.after else _("removed")


def changes(data: LockedData, after: Any) -> list[Change]:
    """The differences between the data of the job and these."""
    old = _places(data, data.value)
    new = _places(data, after)
    found = []
    for path in [*old, *(path for path in new if path not in old)]:
        raw, shown = old.get(path, (MISSING, None))
        new_raw, new_shown = new.get(path, (MISSING, None))
        if not _same(raw, new_raw):
            texts = _text(raw, shown), _text(new_raw, new_shown)
            found.append(Change(path_text(path), *texts, key=path_text(path[:1])))
    return found


def entry(found: Sequence[Change]) -> str:
    """The changes as the history tells them: only the keys of the data. Everybody who
    sees a job reads its history, also without the right to see its data."""
    keys = list(dict.fromkeys(change.key for change in found))
    told = [_cut(key) for key in keys[:MOST_WRITTEN]]
    left = len(keys) - len(told)
    if left:
        more = ngettext("and %(count)s more", "and %(count)s more", left)
        told.append(more % {"count": numbers.number(left)})
    return _("Edited the data: %(keys)s.") % {"keys": ", ".join(told)}


def _places(data: LockedData, value: Any) -> dict[Any, tuple[Any, Any]]:
    found = leaves(value, data.masked(value))
    return {path: (raw, shown) for path, raw, shown in found}


def _same(one: Any, other: Any) -> bool:
    """Whether both are there and equal; 1 is not "1"."""
    return type(one) is type(other) and bool(one == other)


def _text(raw: Any, shown: Any) -> str:
    if raw is MISSING:
        return ""
    text = visible(scalar(shown))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_WRITTEN else f"{text[: LONGEST_WRITTEN - 1]}…"
