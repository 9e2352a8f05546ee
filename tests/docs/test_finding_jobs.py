"""What the guide says can be typed to find jobs is understood."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from django.db import connection

from django_jobqueue.search import SearchError, parse
from django_jobqueue.search.parser import qualifiers
from django_jobqueue.search.selection import Selection, Table
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import data_index
from tests.docs.pages import pages

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PAGE = pages()["docs/guides/finding-jobs.md"]
TERM = re.compile(r"`([a-z-]+(?:\.[^`:]+)?:[^`]+)`")


def understood(text: str) -> list[Table]:
    """The tables in which this can be searched for."""
    found = []
    for table in Table:
        try:
            Selection(table, parse(text, table, NOW).terms)
        except SearchError:
            continue
        found.append(table)
    return found


def test_every_term_of_the_guide_is_understood() -> None:
    tables = {text: understood(text) for text in TERM.findall(PAGE)}
    assert [text for text, found in tables.items() if not found] == []
    of_queued = [t for t in tables if t.startswith(("state:", "due:"))]
    assert [t for t in of_queued if Table.QUEUED not in tables[t]] == []


def test_the_guide_has_every_term() -> None:
    table = PAGE.partition("| term | finds jobs |")[2].partition("\n\n")[0]
    told = {text.partition(":")[0].partition(".")[0] for text in TERM.findall(table)}
    terms = {name for table in Table for name in qualifiers(table)}
    assert told == {name.removesuffix(".key") for name in terms}


@pytest.mark.dear
@pytest.mark.parametrize("table", Table)
def test_the_index_of_the_guide_is_noticed(table: Table, db: None) -> None:
    first, second = re.findall(r'"(CREATE INDEX [^"]+)"\n\s+"([^"]+)"', PAGE)[0]
    statement = (first + second).replace("CONCURRENTLY", "")
    assert not data_index.has_data_index(DjangoDatabase(), table)
    with connection.cursor() as cursor:
        name = f"jobqueue_{table}job"
        cursor.execute(statement.replace("jobqueue_archivedjob", name))
    assert data_index.has_data_index(DjangoDatabase(), table)
