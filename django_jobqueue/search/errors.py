"""Errors in a search."""

from __future__ import annotations


class SearchError(ValueError):
    """A search that cannot be understood; the message says why, and what can be."""
