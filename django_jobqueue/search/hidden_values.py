"""Nobody finds out by searching what they may not see, nor by what others searched for:
the rule of the admin, the HTTP API, the commands, the audit and the log."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from django.utils.translation import gettext as _

from django_jobqueue.search.errors import SearchError
from django_jobqueue.search.selection import Selection, Term
from django_jobqueue.text.redaction import MASK, is_secret, mask_at

SensitiveKeys = Callable[[], Iterable[str]]  # of the job types that are searched


def check_values(
    selection: Selection,
    *,
    sees_data: bool,
    reveals: bool,
    sensitive: SensitiveKeys,
    sees_messages: bool = True,
) -> None:
    """Raises SearchError for a selection by values that are hidden.

    ``sees_data`` is whether the reader sees the data of jobs, ``reveals`` also those
    under sensitive keys, and ``sees_messages`` the messages of errors.
    """
    # A failure group is a digest of a message, so that whoever guesses one has both.
    of_messages = ("text", "group", "groups")
    if not sees_messages and any(t.field in of_messages for t in selection.terms):
        raise SearchError(
            _("You may not view error messages, so you cannot search them.")
        )
    keys = {
        key for term in selection.terms if term.field == "data" for key in term.path
    }
    hidden = hidden_keys(keys, sees_data=sees_data, reveals=reveals, of=sensitive)
    if hidden and not sees_data:
        raise SearchError(
            _("You may not view the data of jobs, so you cannot search it.")
        )
    if hidden:
        error = _(
            "“%(key)s” is a sensitive key: you may not view its values, so you cannot "
            "search for them. If it is sensitive only for other job types, add “type:”."
        )
        raise SearchError(error % {"key": hidden[0]})


def hidden_keys(
    keys: Collection[str], *, sees_data: bool, reveals: bool, of: SensitiveKeys
) -> list[str]:
    """Those of these keys whose values this reader may not see; ``of`` is as
    ``sensitive`` above."""
    if not keys or (sees_data and reveals):
        return []
    if not sees_data:
        return sorted(keys)
    sensitive = {key.lower() for key in of()}
    return sorted(key for key in keys if is_secret(key, sensitive))


def shown_value(term: Term, sensitive: SensitiveKeys | None) -> Any:
    """What a term compares with, for who may see data but no secrets, whose keys
    ``sensitive`` tells; data and texts of errors are masked for all others (None)."""
    if term.field not in ("data", "text"):
        return term.value
    if sensitive is None:
        return MASK
    if term.field == "text":
        return term.value
    return mask_at(term.path, term.value, sensitive())
