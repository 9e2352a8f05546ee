"""Where personal data can be in the tables of the console."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.states import Holds
from django_jobqueue.store.personal_columns import STOPPED, Column, Source

SOURCES: Final = (
    Source(
        name="searches",
        label=_("Searches"),
        page="jobqueue_console.jobsearch",
        effect=_("Searches for the value are stopped."),
        table="jobqueue_console_jobsearch",
        order={"id": "uuid"},
        columns=(
            Column("query", Holds.TEXT),
            Column("selections", Holds.SELECTION),
            Column("created_by", Holds.TEXT),
        ),
        also={"selections": {"query": "'erased'", **STOPPED}},
    ),
)
