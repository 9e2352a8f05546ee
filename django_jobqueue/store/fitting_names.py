"""Job types whose names fit the patterns of a caller, as a condition in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django_jobqueue.domain.name_patterns import like_pattern

# Of the row `type`. Whatever is cut to a number is cut after it, so that the names of
# others count for nothing.
FITS: Final = """
(cardinality(%(likes)s::text[]) = 0 OR type.name LIKE ANY (%(likes)s::text[]))
"""


def fitting(patterns: Sequence[str]) -> dict[str, Any]:
    """The parameters of ``FITS``: a name fits one of these patterns, if there are
    some."""
    return {"likes": [like_pattern(pattern) for pattern in patterns]}
