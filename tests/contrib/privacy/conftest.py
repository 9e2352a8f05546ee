"""Users of the admin, rows of every state, chunks of ten rows, and commands."""

from __future__ import annotations

from tests.admin.conftest import anna, fresh_figures, log_in, scene
from tests.commands.conftest import any_width, manage
from tests.operations.conftest import told
from tests.workers.conftest import declare, small_chunks

__all__ = [
    "anna",
    "any_width",
    "declare",
    "fresh_figures",
    "log_in",
    "manage",
    "scene",
    "small_chunks",
    "told",
]
