"""What the verbs say besides what they do."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def told(operated: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What receivers of the signal ``operated`` were told, in order."""
    return operated
