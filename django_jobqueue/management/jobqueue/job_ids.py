"""Finds the job that an id on the command line names, whole or shortened."""

from __future__ import annotations

from itertools import chain
from typing import Final
from uuid import UUID

from django.core.management.base import CommandError
from django.db.models import TextField
from django.db.models.expressions import Value
from django.db.models.functions import Cast, Replace

from django_jobqueue.conf import conf
from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.search.ids import SEPARATOR, SHORTEST, IdSearch, id_search

HELP: Final = f"its id, or the first {SHORTEST} or more digits of it"


def job_id(text: str) -> UUID:
    """The id of the job whose id is this text, begins with it, or is shortened to it as
    in ``01a20758…d4ca40``. A whole id is returned without a look at the database.
    Raises CommandError if no job has such an id, or several do."""
    wanted = id_search(text)
    if wanted is None:
        raise CommandError(
            f"{text!r} is no job id: give it, or its first {SHORTEST} or more digits."
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
