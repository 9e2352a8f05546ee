"""Conditions of the columns that hold a rate in its normal text form."""

from __future__ import annotations

from django.db.models import Q

from django_jobqueue.domain.rates import NO_RATE, STORED


def is_rate(column: str) -> Q:
    """The column has a rate, or null."""
    return Q(**{f"{column}__isnull": True}) | Q(**{f"{column}__regex": STORED})


def is_rate_override(column: str) -> Q:
    """The column has what an operator says instead: a rate, unlimited, or null."""
    return (
        Q(**{f"{column}__isnull": True})
        | Q(**{column: NO_RATE})
        | Q(**{f"{column}__regex": STORED})
    )
