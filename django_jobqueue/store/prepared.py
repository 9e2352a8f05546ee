"""Runs the statements of every job without the overhead of a cursor.

psycopg looks at the type of each parameter, finds the prepared statement by its text
and types, and looks up a reader for each column: of the 1.3 ms from sending a lone
claim to its jobs it is a fifth. Here a statement is prepared once for a connection, its
parameters are text, and the server knows their types from the statement.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg import Connection, errors, pq
from psycopg.abc import PQGen
from psycopg.adapt import Transformer
from psycopg.waiting import Ready, Wait

ENCODING: Final = "utf-8"  # Django connects with it
_numbers = itertools.count(1)


class PreparedStatement(str):
    """A statement that has rows, and whose parameters are texts, numbers or None.

    An array is given as its text, by the functions below. On connections that are not
    the machinery's own it is a statement like any other.
    """

    __slots__ = ()


class Prepared:
    """A hot statement on one connection."""

    def __init__(self, connection: Connection[Any], statement: str) -> None:
        self.name = f"hot_{next(_numbers)}"
        places = _Places()
        text = statement % places
        self._order = tuple(places)
        self._reader = Transformer(connection)
        self._knows_columns = False
        with connection.lock:
            connection.pgconn.send_prepare(self.name.encode(), text.encode(ENCODING))
            _answer(connection)

    def rows(
        self, connection: Connection[Any], params: Mapping[str, Any]
    ) -> list[tuple[Any, ...]]:
        """Run it, in a transaction of its own, and return its rows. Raises
        psycopg.Error."""
        with connection.lock:
            self.send(connection, params)
            result = _answer(connection)
        return self.read(result)

    def send(self, connection: Connection[Any], params: Mapping[str, Any]) -> None:
        """Send it, and do not wait for the answer."""
        values = [
            None if (value := params[name]) is None else str(value).encode(ENCODING)
            for name in self._order
        ]
        connection.pgconn.send_query_prepared(
            self.name.encode(), values, result_format=pq.Format.BINARY
        )

    def read(self, result: pq.abc.PGresult) -> list[tuple[Any, ...]]:
        """The rows of its answer."""
        self._reader.set_pgresult(result, set_loaders=not self._knows_columns)
        self._knows_columns = True
        rows = self._reader.load_rows(0, result.ntuples, tuple)
        self._reader.set_pgresult(None, set_loaders=False)
        return rows


def pipelined(
    connection: Connection[Any], calls: Sequence[tuple[Prepared, Mapping[str, Any]]]
) -> list[list[tuple[Any, ...]]]:
    """Run statements in one transaction and one round trip; return each one's rows.
    Raises psycopg.Error.

    What is sent up to a sync is a transaction without a BEGIN or COMMIT, and each
    statement has a snapshot of its own.
    """
    pgconn = connection.pgconn
    with connection.lock:
        pgconn.enter_pipeline_mode()
        try:
            for prepared, params in calls:
                prepared.send(connection, params)
            pgconn.pipeline_sync()
            results = connection.wait(_results_to_sync(pgconn))
        finally:
            if not connection.closed:
                pgconn.exit_pipeline_mode()
    for result in results:
        _check(result)
    return [
        prepared.read(result)
        for (prepared, _), result in zip(calls, results, strict=True)
    ]


class _Places(dict[str, str]):
    """Numbers the parameters of a statement as they come."""

    def __missing__(self, name: str) -> str:
        self[name] = f"${len(self) + 1}"
        return self[name]


def _answer(connection: Connection[Any]) -> pq.abc.PGresult:
    """Send what is to be sent, and wait for the one result. Raises psycopg.Error."""
    result = connection.wait(all_results(connection.pgconn))[0]
    _check(result)
    return result


def _check(result: pq.abc.PGresult) -> None:
    if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        raise errors.error_from_result(result, ENCODING)


def _results_to_sync(pgconn: pq.abc.PGconn) -> PQGen[list[pq.abc.PGresult]]:
    """Send what is to be sent, and wait for the results of the whole pipeline."""
    while pgconn.flush():
        if (yield Wait.RW) & Ready.R:
            pgconn.consume_input()
    results: list[pq.abc.PGresult] = []
    while True:
        while pgconn.is_busy():
            if (yield Wait.R):
                pgconn.consume_input()
        result = pgconn.get_result()
        if result is None:  # the end of one statement
            continue
        if result.status == pq.ExecStatus.PIPELINE_SYNC:
            return results
        results.append(result)


def all_results(pgconn: pq.abc.PGconn) -> PQGen[list[pq.abc.PGresult]]:
    """Send what is to be sent, and wait for the results of all of it."""
    while pgconn.flush():
        if (yield Wait.RW) & Ready.R:
            pgconn.consume_input()
    results: list[pq.abc.PGresult] = []
    while True:
        while pgconn.is_busy():  # libpq itself would wait without a bound
            if (yield Wait.R):
                pgconn.consume_input()
        result = pgconn.get_result()
        if result is None:
            return results
        results.append(result)


# Arrays as PostgreSQL reads them. psycopg looks at each value of a list: a claim's
# parameters took half of what a claim takes here, and take a sixth as text.


def array_of_numbers(numbers: Iterable[int]) -> str:
    """An array of integers: the text of a list, which Python makes in two thirds of the
    time of a join."""
    return f"{{{str(list(numbers))[1:-1]}}}"


def array_of_ids(ids: Iterable[UUID]) -> str:
    """An array of UUIDs; one after the other it takes three times as long."""
    return f"{{{b''.join([id.int.to_bytes(16) for id in ids]).hex(',', 16)}}}"


def array_of_moments(moments: Iterable[datetime]) -> str:
    """An array of points in time, which know their zones."""
    return f"{{{','.join([moment.isoformat() for moment in moments])}}}"


def array_of_texts(texts: Iterable[str]) -> str:
    """An array of any texts."""
    return f"{{{','.join(map(_quoted, texts))}}}"


def _quoted(text: str) -> str:
    if "\\" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
