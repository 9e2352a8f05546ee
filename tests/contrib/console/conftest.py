"""Users of the admin, rows of every state, chunks of ten rows, and commands."""

from __future__ import annotations

from tests.admin.conftest import anna, fresh_figures, log_in, scene
from tests.commands.conftest import any_width, manage
from tests.workers.conftest import small_chunks

__all__ = [
    "any_width",
    "anna",
    "fresh_figures",
    "log_in",
    "manage",
    "scene",
    "small_chunks",
]
