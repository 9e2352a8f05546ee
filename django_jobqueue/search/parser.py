"""Parses a search into the terms of a selection."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from difflib import get_close_matches
from typing import Final, NamedTuple

from django.utils.translation import gettext as _

from django_jobqueue.domain.states import ArchivedStatus
from django_jobqueue.search.errors import SearchError
from django_jobqueue.search.ids import SHORTEST, IdSearch, id_search
from django_jobqueue.search.selection import (
    FIELDS,
    SEVERAL,
    STATES,
    Field,
    Table,
    Term,
    ValueType,
)
from django_jobqueue.search.tokens import Token, tokens
from django_jobqueue.search.values import comparisons

ALIASES: Final = {"fp": "group", "job-type": "type", "args": "data"}
STATE_OF: Final = {Table.QUEUED: "state", Table.ARCHIVED: "status"}
CHOICES: Final = {"state": STATES, "status": tuple(ArchivedStatus.values)}


class Search(NamedTuple):
    """A parsed search: terms, and ids of which only a part may be given.

    A word without a colon is an id if it can be one, and a text otherwise.

    A job has to meet all the terms, and to have one of the ids, if there are any.
    """

    terms: tuple[Term, ...] = ()
    ids: tuple[IdSearch, ...] = ()


def parse(text: str, table: Table, now: datetime) -> Search:
    """Parse a search among the jobs of this table. Raises SearchError."""
    terms: list[Term] = []
    ids: list[IdSearch] = []
    for token in tokens(text):
        if token.name == "id":
            ids.append(_id(token, table))
        elif not token.name:
            by_id = None if _is_quoted(token) else id_search(token.value)
            if by_id is None:
                terms.append(Term("text", _word(token)))
            else:
                ids.append(by_id)
        else:
            terms += _terms(token, table, now)
    return Search(tuple(terms), tuple(ids))


def qualifiers(table: Table) -> list[str]:
    """The names that can stand before a colon."""
    return [
        f"{field.name}.key" if field.value_type is ValueType.JSON else field.name
        for field in FIELDS.values()
        if table in field.tables and field.value_type not in SEVERAL
    ]


def _id(token: Token, table: Table) -> IdSearch:
    search = id_search(token.value)
    if search is not None:
        return search
    error = _(
        "“%(text)s” is not a job ID. Jobs are searched by id: a whole one, or at least "
        "its first %(digits)d digits. For anything else, name the field: %(names)s."
    )
    values = {"text": token.value, "digits": SHORTEST, "names": _named(table)}
    raise SearchError(error % values)


def _is_quoted(token: Token) -> bool:
    return token.text != token.value


def _word(token: Token) -> str:
    if not token.value:
        raise SearchError(_("There is nothing between the quotation marks."))
    return token.value


def _terms(token: Token, table: Table, now: datetime) -> Iterator[Term]:
    field = _field(token, table)
    if not token.value and not token.is_quoted:
        error = _("“%(name)s:” needs a value.")
        raise SearchError(error % {"name": token.name})
    for operator, value in comparisons(field.value_type, token, now):
        if field.name in CHOICES:
            _check_choice(field.name, value)
        yield Term(field.name, value, operator, token.path)


def _field(token: Token, table: Table) -> Field:
    """The field that is meant. Raises SearchError."""
    name = ALIASES.get(token.name.replace("_", "-"), token.name.replace("_", "-"))
    if name in STATE_OF.values():
        name = STATE_OF[table]
    field = FIELDS.get(name)
    if field is None or field.value_type in SEVERAL:
        raise SearchError(_unknown(token, table))
    if table not in field.tables:
        raise SearchError(_elsewhere(name, table))
    if field.value_type is ValueType.JSON and not token.path:
        raise SearchError(_("Name a key: “data.order_id:7”."))
    if token.path and field.value_type is not ValueType.JSON:
        raise SearchError(_("Only “data.” has keys."))
    return field


def _unknown(token: Token, table: Table) -> str:
    near = get_close_matches(token.name, [*qualifiers(table), *ALIASES], 1, 0.5)
    values = {"name": token.name, "names": _named(table), "near": "".join(near)}
    if near:
        error = _(
            "There is no “%(name)s:”. Did you mean “%(near)s:”? These can be "
            "searched: %(names)s."
        )
    else:
        error = _("There is no “%(name)s:”. These can be searched: %(names)s.")
    return error % values


def _elsewhere(name: str, table: Table) -> str:
    if table is Table.QUEUED:
        error = _("“%(name)s:” is for archived jobs; these have not ended.")
    else:
        error = _("“%(name)s:” is for queued jobs; these have ended.")
    return error % {"name": name}


def _check_choice(name: str, value: str) -> None:
    choices = CHOICES[name]
    if value in choices:
        return
    near = get_close_matches(value, choices, 1)
    values = {"value": value, "choices": ", ".join(choices), "near": "".join(near)}
    if near:
        error = _("There is no state “%(value)s”. Did you mean “%(near)s”?")
    else:
        error = _("There is no state “%(value)s”, only %(choices)s.")
    raise SearchError(error % values)


def _named(table: Table) -> str:
    return ", ".join(f"{name}:" for name in qualifiers(table))
