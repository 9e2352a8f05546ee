"""Finds the jobs whose ids people give in part: their beginnings, or the short form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import CharField, Q
from django.db.models.functions import Cast
from django.db.models.query import QuerySet

from django_jobqueue.search.ids import IdSearch


def matching_ids(
    queryset: QuerySet[Any], searches: Sequence[IdSearch], most: int
) -> tuple[UUID, ...]:
    """The ids of jobs that have one of these, at most so many.

    Looked up by themselves, since a list in another order might walk all of its index
    for a few of them.
    """
    if all(search.is_exact for search in searches):
        return tuple(dict.fromkeys(search.first for search in searches))[:most]
    rows = queryset.order_by().annotate(id_text=Cast("pk", CharField()))
    wanted = Q()
    for search in searches:
        ends = Q(id_text__endswith=search.ending) if search.ending else Q()
        wanted |= Q(pk__range=(search.first, search.last)) & ends
    return tuple(rows.filter(wanted).values_list("pk", flat=True)[:most])
