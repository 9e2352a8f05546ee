"""Databases that are there for one test: another engine, another address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections
from django.test import override_settings


@contextmanager
def database(alias: str, **changes: Any) -> Iterator[None]:
    """The database of the jobs, as ``alias``, with these settings changed."""
    settings = {**connections.settings["default"], **changes}
    connections.settings[alias] = settings
    try:
        with override_settings(JOBQUEUE={"DATABASE": alias}):
            yield
    finally:
        connections[alias].close()
        del connections[alias]
        del connections.settings[alias]
