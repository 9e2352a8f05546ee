"""Where personal data can be: in the columns that the rooms name."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.states import Holds
from django_jobqueue.rooms import offered
from django_jobqueue.store.personal_columns import Column, Source

SOURCES: Final = (
    Source(
        name="erasures",
        label=_("Records of erasures"),
        page="jobqueue_privacy.erasure",
        table="jobqueue_privacy_erasure",
        order={"id": "uuid"},
        columns=(Column("reason", Holds.TEXT), Column("created_by", Holds.TEXT)),
    ),
)


def sources() -> list[Source]:
    """Those of all rooms, the core's first."""
    return [source for some in offered("personal_columns") for source in some]
