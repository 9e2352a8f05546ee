"""Whom a failure group affects: the most common values in the data of its jobs."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from django_jobqueue.admin.base import VIEW_DATA, may, may_view
from django_jobqueue.admin.data_summaries import template_of
from django_jobqueue.admin.parts import catalogue
from django_jobqueue.models import ArchivedJob
from django_jobqueue.search.tokens import quoted
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import summary_data
from django_jobqueue.text import data_summary, numbers
from django_jobqueue.text.json_reading import read_json
from django_jobqueue.text.redaction import MASK, is_secret, mask_text
from django_jobqueue.text.sanitizing import visible

VALUES: Final = 3  # of a key that are shown
KEYS: Final = 6


class AffectedValue(NamedTuple):
    """A value, and how many of the jobs have it."""

    text: str
    jobs: str
    url: str | SafeString  # of these jobs; empty where the value cannot be searched for


class AffectedKey(NamedTuple):
    """A key of the data, with its most common values."""

    name: str
    values: Sequence[AffectedValue]
    others: int  # values that are not shown
    different: int  # values


def affected(request: HttpRequest, fingerprint: UUID) -> list[AffectedKey]:
    """The keys of the data of its newest archived jobs, those that say most first;
    nothing for who may not see data."""
    if not (may(request, VIEW_DATA) and may_view(request, ArchivedJob)):
        return []
    values = summary_data.values_of_group(DjangoDatabase(), fingerprint)
    types = catalogue.job_types(request, {job_type for job_type, *_others in values})
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    secret: set[str] = set()
    for job_type, key, value, jobs in values:
        row = types.get(job_type)
        wanted = data_summary.keys_of(template_of(row))
        if wanted and key not in wanted:
            continue
        sensitive = row.sensitive if row is not None else []
        if is_secret(key, [str(name).lower() for name in sensitive]):
            secret.add(key)
        counts[key][value] += jobs
    ranked = sorted(counts.items(), key=_rank)
    return [
        _key(fingerprint, key, counted, masked=key in secret)
        for key, counted in ranked[:KEYS]
    ]


def _rank(item: tuple[str, Counter[str]]) -> tuple[float, str]:
    """A few values that many jobs share say more than one for each job, or for all."""
    key, counted = item
    shared = counted.most_common(1)[0][1] / counted.total()
    is_telling = len(counted) > 1 and len(counted) < counted.total()
    return (-shared if is_telling else 1.0, key)


def _key(
    fingerprint: UUID, key: str, counted: Counter[str], *, masked: bool
) -> AffectedKey:
    values = [] if masked else list(_values(fingerprint, key, counted))
    return AffectedKey(
        name=visible(key),
        values=values or [AffectedValue(MASK, "", "")],
        others=len(counted) - len(values) if values else 0,
        different=len(counted),
    )


def _values(
    fingerprint: UUID, key: str, counted: Counter[str]
) -> Iterator[AffectedValue]:
    address = reverse("admin:jobqueue_archivedjob_changelist")
    shown = counted.most_common(VALUES)
    if shown[0][1] == 1 and len(counted) > VALUES:  # each job has a value of its own
        shown = shown[:1]
    for value, jobs in shown:
        text = data_summary.value_text(read_json(value))
        masked = mask_text(text)
        # An address has the value whole: none for what looks like a credential.
        term = _term(key, read_json(value)) if mask_text(value) == value else ""
        query = urlencode({"q": term, "fingerprint": str(fingerprint)})
        yield AffectedValue(
            text=visible(masked),
            jobs=numbers.number(jobs),
            url=f"{address}?{query}" if term else "",
        )


def _term(key: str, value: Any) -> str:
    """The search term that finds it; empty for a key that no term can name."""
    if not key.isidentifier():
        return ""
    if isinstance(value, str):
        return f"data.{key}:{quoted(value)}"
    return f"data.{key}:{json.dumps(value)}"
