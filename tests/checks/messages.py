"""What a check says, asked for in one line."""

from __future__ import annotations

from collections.abc import Iterable

from django.core.checks import CheckMessage, Error, Warning


def only(messages: Iterable[CheckMessage], id: str, *parts: str) -> str:
    """The text and the hint of the one message, which has these parts.

    By its ID it is an error, as E001, or a warning, as W001.
    """
    (message,) = messages
    assert message.id == f"jobqueue.{id}"
    assert type(message) is (Error if id[0] == "E" else Warning)
    said = f"{message.msg}\n{message.hint or ''}"
    assert [part for part in parts if part not in said] == [], said
    return said
