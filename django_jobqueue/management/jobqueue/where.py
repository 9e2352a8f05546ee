"""The jobs that a command selects: ``--where`` in the language of the admin's search,
and short options for the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandError
from django.db.models import TextField
from django.db.models.expressions import Value
from django.db.models.functions import Cast, Replace

from django_jobqueue.conf import conf
from django_jobqueue.domain.registry import registry
from django_jobqueue.exceptions import UnknownJobType
from django_jobqueue.management.jobqueue.failure_groups import key_of
from django_jobqueue.management.jobqueue.inputs import duration
from django_jobqueue.management.jobqueue.subcommand import Options
from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.models.matching_ids import matching_ids
from django_jobqueue.search import SearchError, parse
from django_jobqueue.search.ids import SEPARATOR, SHORTEST, IdSearch, id_search
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.search.type_names import types_named, with_whole_type
from django_jobqueue.store import find
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.text.durations import DURATIONS
from django_jobqueue.verbs.declarations import Argument, Takes

JOB_ID: Final = f"its id, or the first {SHORTEST} or more digits of it"
JOB: Final = Argument("id", f"The job, by {JOB_ID}.", "ID", words="1")
MOST_IDS: Final = 1_000  # jobs whose id begins as a search says
AGE: Final = {Table.QUEUED: "created", Table.ARCHIVED: "finished"}
FILTERS: Final = {
    one.name: one
    for one in (
        Argument(
            "where",
            "Jobs that the admin's search finds by this, such as 'type:send_receipt "
            "error:TimeoutError data.order_id:7'; may be given again, for jobs that "
            "meet all.",
            "SEARCH",
            is_list=True,
        ),
        Argument(
            "type",
            "Jobs of this type; the last part of its name is enough if only one "
            "has it.",
            "TYPE",
        ),
        Argument("queue", "Jobs in this queue.", "QUEUE"),
        Argument(
            "group",
            "Jobs of this failure group: its fingerprint, or the beginning of it.",
            "GROUP",
        ),
        Argument(
            "older_than",
            "Jobs that were enqueued (archived ones: that ended) longer ago: "
            f"{DURATIONS}.",
            Takes.DURATION,
        ),
    )
}


def filters(names: Iterable[str], group: str = "filter") -> Iterator[Argument]:
    """Those of these options that every command has alike."""
    return (FILTERS[name]._replace(group=group) for name in names if name in FILTERS)


def given(options: Options, names: Iterable[str]) -> dict[str, Any]:
    """The filters that were given."""
    return {name: options[name] for name in names if options[name]}


def selection(
    table: Table, filters: dict[str, Any], now: datetime, *others: Term
) -> Selection:
    """The jobs of this table that these options choose, and that meet the ``others``.
    Raises CommandError, UnknownJobType."""
    return Selection(table, (*others, *_terms(table, filters, now)))


def _terms(table: Table, filters: dict[str, Any], now: datetime) -> Iterator[Term]:
    if "type" in filters:
        yield Term("type", whole_type(filters["type"]))
    if "queue" in filters:
        yield Term("queue", filters["queue"])
    if "group" in filters:
        yield Term("group", key_of(filters["group"]))
    if "older_than" in filters:
        age = duration("--older-than", filters["older_than"])
        yield Term(AGE[table], now - age, "<")
    if "where" in filters:
        yield from searched(table, " ".join(filters["where"]), now)


def searched(table: Table, text: str, now: datetime) -> list[Term]:
    """The terms of what somebody typed, as the admin's list takes it. Raises
    CommandError."""
    try:
        search = parse(text, table, now)
        names = find.known_names(DjangoDatabase())
        terms = [with_whole_type(term, names) for term in search.terms]
    except SearchError as error:
        raise CommandError(f"--where: {error}") from None
    if not terms and not search.ids:
        raise CommandError("--where: say which jobs, such as 'state:retrying'.")
    if search.ids:
        model: Any = QueuedJob if table is Table.QUEUED else ArchivedJob
        jobs = model.objects.using(conf.database)
        ids = matching_ids(jobs, search.ids, MOST_IDS + 1)
        if len(ids) > MOST_IDS:
            raise CommandError(
                f"--where: more than {MOST_IDS:,} jobs have an id that begins so; give "
                "more of it."
            )
        terms.append(Term("id", ids))
    return terms


def whole_type(name: str) -> str:
    """The job type that this names, whole or by its last part. Raises CommandError,
    UnknownJobType with the names most like it."""
    known = find.known_names(DjangoDatabase())
    if name in known:
        return name
    matches = types_named(name, known) if name else []
    if len(matches) > 1:
        raise CommandError(
            f"More than one job type is called so: {', '.join(matches)}."
        )
    if not matches:
        raise UnknownJobType(name, registry.near(name, known))
    return matches[0]


def job_id(text: str) -> UUID:
    """The id of the job whose id is this text, begins with it, or is shortened to it as
    in ``01a20758…d4ca40``. A whole id is returned without a look at the database.
    Raises CommandError if no job has such an id, or several do."""
    wanted = id_search(text)
    if wanted is None:
        raise CommandError(
            f"{text!r} is not a job id: give it, or its first {SHORTEST} or more "
            "digits."
        )
    if wanted.is_exact:
        return wanted.first
    matches = _matching(wanted)
    if len(matches) == 1:
        return matches[0]
    relation = "looks like" if SEPARATOR in text else "begins with"
    if not matches:
        raise CommandError(f"There is no job whose id {relation} {text!r}.")
    raise CommandError(
        f"Several jobs have an id that {relation} {text!r}, such as {matches[0]} and "
        f"{matches[1]}."
    )


def _matching(wanted: IdSearch) -> list[UUID]:
    """The first ids of this form; two tell that there are several."""
    if conf.mode != "queue":  # jobs are in the memory of other processes
        return []
    tables = []
    for model in (QueuedJob, ArchivedJob):
        rows = model.objects.using(conf.database)
        rows = rows.filter(pk__gte=wanted.first, pk__lte=wanted.last).order_by("pk")
        if wanted.ending:
            hexadecimal = Replace(
                Cast("pk", TextField()),
                Value("-", output_field=TextField()),
                Value("", output_field=TextField()),
            )
            rows = rows.alias(digits=hexadecimal).filter(digits__endswith=wanted.ending)
        tables.append(rows.values_list("pk", flat=True)[:2])
    return sorted(set(chain.from_iterable(tables)))[:2]
