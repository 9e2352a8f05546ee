"""Sends a notification to a channel: mail, a signed webhook, Slack, or a callable."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parseaddr
from typing import Final

import django
from django.conf import settings
from django.core import mail
from django.utils.module_loading import import_string

from django_jobqueue.conf.alert_channels import ChannelConfig
from django_jobqueue.contrib.alerts.http_post import TIMEOUT, NotSent, post, reason_of
from django_jobqueue.contrib.alerts.notification import Notification
from django_jobqueue.domain.webhooks import signed

LONGEST_SUBJECT: Final = 200  # characters
_ANGLE: Final = re.compile(r"[&<>]")
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def send(channel: ChannelConfig, notification: Notification) -> None:
    """Send it. Raises NotSent, whose text has no address, secret or personal data."""
    deliver = _SENDERS.get(channel.to, _call)
    try:
        deliver(channel, notification)
    except NotSent:
        raise
    except Exception as error:  # of a mail server, or of the project's own code
        code = getattr(error, "smtp_code", "")
        raise NotSent(f"{reason_of(error)} {code}".strip()) from error


def mail_addresses(channel: ChannelConfig) -> list[str]:
    """The recipients of a mail channel."""
    if channel.addresses:
        return list(channel.addresses)
    # Pairs of name and address until Django 6.0, addresses from then on.
    return [one if isinstance(one, str) else one[1] for one in settings.ADMINS]


def _mail(channel: ChannelConfig, notification: Notification) -> None:
    to = mail_addresses(channel)
    if not to:
        raise NotSent("no recipient: ADMINS is empty")
    title = notification.title
    subject = f"{settings.EMAIL_SUBJECT_PREFIX}{title}"[:LONGEST_SUBJECT]
    # The same in each attempt, so that many mail servers show a repetition once.
    domain = parseaddr(settings.SERVER_EMAIL)[1].rpartition("@")[2] or "localhost"
    headers = {
        "Message-ID": f"<{notification.id}.jobqueue@{domain}>",
        "Auto-Submitted": "auto-generated",
    }
    sender = settings.SERVER_EMAIL
    message = mail.EmailMessage(subject, notification.text, sender, to, headers=headers)
    if django.VERSION < (6, 1):
        message.connection = connection = mail.get_connection()
        if getattr(connection, "timeout", TIMEOUT) is None:  # EMAIL_TIMEOUT is not set
            connection.timeout = TIMEOUT  # type: ignore[attr-defined]
    message.send()


def _webhook(channel: ChannelConfig, notification: Notification) -> None:
    now = datetime.now(UTC)
    body = json.dumps(notification.as_json(now), separators=(",", ":")).encode()
    headers = signed(channel.secrets, f"alert_{notification.id}", body, now)
    post(channel.url, body, headers)


def _slack(channel: ChannelConfig, notification: Notification) -> None:
    """Slack takes three characters for markup."""
    text = _ANGLE.sub(lambda one: _ENTITIES[one[0]], notification.text)
    post(channel.url, json.dumps({"text": text}).encode(), {})


def _call(channel: ChannelConfig, notification: Notification) -> None:
    import_string(channel.to)(notification)


_SENDERS: Final[Mapping[str, Callable[[ChannelConfig, Notification], None]]] = {
    "mail": _mail,
    "webhook": _webhook,
    "slack": _slack,
}
