"""Texts from handlers, made fit to be stored: without secrets, without what PostgreSQL
refuses, in a bounded number of bytes."""

from __future__ import annotations

from collections.abc import Collection

from django_jobqueue.text.redaction import mask_end, mask_start


def text_of(value: object) -> str:
    """``str(value)``, also when that raises."""
    try:
        return str(value)
    except BaseException:  # a __str__ may raise anything
        return "<this cannot be formatted>"


def storable(text: str) -> str:
    """The text with escapes for what is no text to PostgreSQL."""
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()


def clean(text: str, limit: int, secrets: Collection[str] = ()) -> str:
    """The text without secrets, storable, in at most ``limit`` bytes.

    Of a longer one both ends are kept, and only they are looked at, so that 50 MB of
    text cost nothing.
    """
    start = storable(mask_start(text, limit, secrets)).encode()
    if len(text) <= limit and len(start) <= limit:
        return start.decode()
    end = storable(mask_end(text, limit, secrets)).encode()
    note = f"\n… {len(text):,} characters, cut here …\n".encode()
    half = max((limit - len(note)) // 2, 0)
    kept = start[:half] + note + end[len(end) - half :]
    return kept.decode("utf-8", "ignore")
