"""The mails that the shop sent, as Django's file backend keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Final

SEPARATOR: Final = b"\n" + b"-" * 79 + b"\n"


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail with an invoice."""

    order: str  # its number
    to: str
    sent_at: datetime
    attachments: tuple[str, ...]


def read_mails(folder: Path) -> Iterator[Mail]:
    """Every mail in the files of this folder."""
    for path in sorted(folder.glob("*.log")):
        for text in path.read_bytes().split(SEPARATOR):
            if text.strip():
                message = message_from_bytes(text, policy=default)
                assert isinstance(message, EmailMessage)
                yield _mail(message)


def _mail(message: EmailMessage) -> Mail:
    return Mail(
        order=str(message["X-Shop-Order"]),
        to=str(message["To"]),
        sent_at=_aware(message["Date"].datetime),
        attachments=tuple(part.get_content() for part in message.iter_attachments()),
    )


def _aware(moment: datetime) -> datetime:
    """A date that ends in -0000, as Django writes them before 6.1, is UTC."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
