"""Commands, in a terminal of any width."""

from __future__ import annotations

from tests.commands.conftest import any_width, manage

__all__ = ["any_width", "manage"]
