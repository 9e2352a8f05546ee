"""What the verbs say besides what they do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from django_jobqueue import signals


@pytest.fixture
def told() -> Iterator[list[dict[str, Any]]]:
    """What receivers of the signal ``operated`` were told, in order."""
    heard: list[dict[str, Any]] = []

    def hear(sender: object, **arguments: Any) -> None:
        arguments.pop("signal")
        heard.append({"verb": sender, **arguments})

    signals.operated.connect(hear)
    yield heard
    signals.operated.disconnect(hear)
