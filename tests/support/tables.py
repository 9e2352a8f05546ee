"""Tables of cases that one test tries, and of which it shows all that differ.

A row has what is given, and last what is wanted::

    assert differing([("1", 1), ("2", 2)], int) == []
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def differing(
    rows: Iterable[tuple[Any, ...]],
    ask: Callable[..., Any],
    fits: Callable[[Any, Any], Any] = operator.eq,
) -> list[tuple[Any, ...]]:
    """Each row that gets something else than it wants, with that, be it an exception.

    ``fits(got, wanted)`` compares them; ``str.startswith``, for example.
    """
    found: list[tuple[Any, ...]] = []
    for row in rows:
        *given, wanted = row
        try:
            got = ask(*given)
            if fits(got, wanted):
                continue
        except (Exception, pytest.fail.Exception) as error:
            got = error
        found.append((*row, got))
    return found


def refusal(kind: type[BaseException], call: Callable[..., Any], *given: Any) -> str:
    """What the exception of this class says that a call must raise."""
    with pytest.raises(kind) as caught:
        call(*given)
    return str(caught.value)
