"""Writes the metadata that a handler changed: ``Context.save_metadata``."""

from __future__ import annotations

from django_jobqueue.conf import conf
from django_jobqueue.domain.arguments import to_json
from django_jobqueue.domain.context import Context
from django_jobqueue.exceptions import ClaimLost, InvalidArguments
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue import metadata


def save_metadata(context: Context) -> None:
    """Write the metadata, if the claim still holds; else raise ClaimLost."""
    if not isinstance(context.metadata, dict):
        type_name = type(context.metadata).__name__
        raise InvalidArguments(f"The metadata of a job is a dict, not {type_name}.")
    text = to_json(context.metadata, limit=conf.max_data_bytes, what="metadata")
    if not metadata.save(DjangoDatabase(), context.id, context.fence, text):
        raise ClaimLost(context.id)
