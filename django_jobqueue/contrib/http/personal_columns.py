"""Where personal data can be in the tables of the HTTP API."""

from __future__ import annotations

from typing import Final

from django.utils.translation import pgettext_lazy

from django_jobqueue.domain.states import Holds
from django_jobqueue.store.personal_columns import Column, Source

SOURCES: Final = (
    Source(
        name="tokens",
        label=pgettext_lazy("tab", "Tokens"),
        table="jobqueue_http_token",
        order={"id": "bigint"},
        columns=(Column("created_by", Holds.TEXT), Column("revoked_by", Holds.TEXT)),
    ),
)
