"""The changes that an edit makes to data, key by key, with secrets locked."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_jobqueue.admin.parts.display import visible
from django_jobqueue.admin.parts.json_text import Number, masked, scalar, written
from django_jobqueue.text import numbers
from django_jobqueue.text.json_reading import repeated_key
from django_jobqueue.text.redaction import MASK, secrets_in

Path = tuple[str | int, ...]
_TOKEN: Final = re.compile(rf"{MASK} \d+")


class LockedData:
    """The data of a job, to be edited by somebody who may not see its secrets.

    ``value`` is what ``json_text.parsed`` read.
    """

    def __init__(self, value: Any, sensitive: Iterable[str]) -> None:
        self.value = value
        self._sensitive = list(sensitive)
        self._secrets = secrets_in(value, self._sensitive)
        self._held: dict[Path, tuple[str, Any]] = {}
        self._put_back: set[Path] = set()  # by the last ``read``
        shown = masked(value, self._sensitive, self._secrets)
        self.text = written(self._lock(value, shown, ()))
        self.shown = _hidden(shown, self._held.keys(), ())

    @property
    def has_locks(self) -> bool:
        """True if anything is locked."""
        return bool(self._held)

    def shown_of(self, value: Any) -> Any:
        """The value that ``read`` returned, with locked values hidden. Typed values are
        not compared with the secrets, which would show which guess is right."""
        return _hidden(masked(value, self._sensitive), self._put_back, ())

    def is_replaced(self, path: Path) -> bool:
        """True if something was typed in place of a locked value, be it the same."""
        return path in self._held and path not in self._put_back

    def read(self, text: str) -> Any:
        """The value of an edited text, with what is locked put back. Raises
        ValidationError."""
        self._put_back.clear()
        try:
            return self._unlock(_parsed(text), ())
        except RecursionError as error:
            raise ValidationError(_("This is nested too deeply.")) from error

    def _lock(self, value: Any, shown: Any, path: Path) -> Any:
        # A key that is a secret cannot be locked: what it is in is, as a whole.
        if (
            isinstance(value, dict)
            and isinstance(shown, dict)
            and (not path or shown.keys() == value.keys())
        ):
            return {
                key: self._lock(item, shown.get(key, MASK), (*path, key))
                for key, item in value.items()
            }
        if isinstance(value, list) and isinstance(shown, list):
            return [
                self._lock(item, shown[index], (*path, index))
                for index, item in enumerate(value)
            ]
        if value == shown:
            return value
        token = f"{MASK} {len(self._held) + 1}"
        self._held[path] = token, value
        return token

    def _unlock(self, value: Any, path: Path) -> Any:
        if isinstance(value, dict):
            return {k: self._unlock(item, (*path, k)) for k, item in value.items()}
        if isinstance(value, list):
            return [self._unlock(item, (*path, i)) for i, item in enumerate(value)]
        if not isinstance(value, str) or MASK not in value:
            return value
        token, held = self._held.get(path, ("", None))
        if value == token:
            self._put_back.add(path)
            return held
        if value == self._at(path) and not _TOKEN.fullmatch(value):
            return value  # the job itself has these dots
        raise ValidationError(
            _(
                "%(where)s: a locked value must stay whole, and in its place. Write "
                "another value, or restore the locked one."
            )
            % {"where": path_text(path)}
        )

    def _at(self, path: Path) -> Any:
        """The job's value at this path; None if there is no such path."""
        value = self.value
        for step in path:
            try:
                value = value[step]
            except (IndexError, KeyError, TypeError):
                return None
        return value


def _hidden(shown: Any, paths: Collection[Path], path: Path) -> Any:
    """The same value with ``MASK`` at these paths."""
    if path in paths:
        return MASK
    if isinstance(shown, dict):
        return {k: _hidden(item, paths, (*path, k)) for k, item in shown.items()}
    if isinstance(shown, list):
        return [_hidden(item, paths, (*path, i)) for i, item in enumerate(shown)]
    return shown


def plain(value: Any) -> Any:
    """The same value with numbers as handlers get them. Raises ValidationError."""
    try:
        return json.loads(written(value))
    except ValueError as error:  # thousands of digits
        raise ValidationError(_("A number has too many digits.")) from error


def path_text(path: Path) -> str:
    """A place in data, for people: ``lines[0].sku``."""
    parts = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in path]
    return visible("".join(parts).removeprefix("."))


def leaves(raw: Any, shown: Any, path: Path = ()) -> Iterator[tuple[Path, Any, Any]]:
    """Every place of a value: what is there, and what is shown of it."""
    if isinstance(raw, dict) and isinstance(shown, dict) and raw:
        for key, item in raw.items():
            yield from leaves(item, shown.get(key, MASK), (*path, key))
    elif isinstance(raw, list) and isinstance(shown, list) and raw:
        for index, item in enumerate(raw):
            yield from leaves(item, shown[index], (*path, index))
    else:
        yield path, raw, shown


def _parsed(text: str) -> Any:
    try:
        return json.loads(
            text,
            parse_int=Number,
            parse_float=Number,
            parse_constant=_refuse,
            object_pairs_hook=_object,
        )
    except json.JSONDecodeError as error:
        place = {"line": error.lineno, "column": error.colno}
        raise ValidationError(
            _("This is not JSON: look at line %(line)d, column %(column)d.") % place
        ) from error


def _refuse(constant: str) -> None:
    raise ValidationError(_("JSON has no %(name)s.") % {"name": constant})


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs) and (twice := repeated_key(pairs)) is not None:
        raise ValidationError(
            _("The key %(name)s is there twice.") % {"name": visible(twice)}
        )
    return mapping


MOST: Final = 100  # changes shown
LONGEST: Final = 200  # characters shown of a value
MOST_WRITTEN: Final = 20  # keys in the history
LONGEST_WRITTEN: Final = 60  # characters of a key
MISSING: Final = object()


class Change(NamedTuple):
    """One place: what was there and what will be; empty for nothing. ``key`` is the key
    of the data that the place is in."""

    where: str
    before: str
    after: str
    key: str

    @property
    def label(self) -> str:
        """The kind of change: added, removed or changed."""
        if not self.before:
            return _("added")
        return _("changed") if self.after else _("removed")


def changes(data: LockedData, after: Any) -> list[Change]:
    """The differences between the data of the job and these, which it has read."""
    old = _places(data.value, data.shown)
    new = _places(after, data.shown_of(after))
    differences = []
    for path in [*old, *(path for path in new if path not in old)]:
        raw, shown = old.get(path, (MISSING, None))
        new_raw, new_shown = new.get(path, (MISSING, None))
        if data.is_replaced(path) or not _same(raw, new_raw):
            texts = _text(raw, shown), _text(new_raw, new_shown)
            differences.append(Change(path_text(path), *texts, key=path_text(path[:1])))
    return differences


def entry(differences: Sequence[Change]) -> str:
    """The changes as the history tells them: only the keys of the data. Everybody who
    sees a job reads its history, also without the right to see its data."""
    keys = list(dict.fromkeys(change.key for change in differences))
    told = [_cut(key) for key in keys[:MOST_WRITTEN]]
    left = len(keys) - len(told)
    if left:
        more = ngettext("and %(count)s more", "and %(count)s more", left)
        told.append(more % {"count": numbers.number(left)})
    return _("Edited the data: %(keys)s.") % {"keys": ", ".join(told)}


def _places(value: Any, shown: Any) -> dict[Path, tuple[Any, Any]]:
    return {path: (raw, shown) for path, raw, shown in leaves(value, shown)}


def _same(one: Any, other: Any) -> bool:
    """True if both are there and equal; 1 is not "1"."""
    return type(one) is type(other) and bool(one == other)


def _text(raw: Any, shown: Any) -> str:
    if raw is MISSING:
        return ""
    text = visible(scalar(shown))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_WRITTEN else f"{text[: LONGEST_WRITTEN - 1]}…"
