"""Checks of ALERTS: what it names can be called, and mail has a recipient."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, Warning
from django.utils.module_loading import import_string

from django_jobqueue.checks.lazy_loading import register
from django_jobqueue.checks.project_settings import TAG
from django_jobqueue.conf import conf
from django_jobqueue.conf.alert_channels import ChannelConfig
from django_jobqueue.contrib.alerts.channels import mail_addresses


@register(TAG)
def check_alerts(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """E040, W040, W041: each entry of ALERTS reaches somebody. That it is written
    right, says E003."""
    for channel in conf.alerts:
        if "." in channel.to:
            yield from _callable(channel)
        elif channel.to == "mail" and not mail_addresses(channel):
            yield Warning(
                f"The alerts of {channel.name!r} in JOBQUEUE['ALERTS'] reach no one: "
                "it has no addresses, and ADMINS is empty.",
                hint='Give it "addresses": ["ops@shop.example"], or fill ADMINS.',
                id="jobqueue.W040",
            )
        elif channel.to == "webhook" and not channel.secrets:
            yield Warning(
                f"The webhook {channel.name!r} in JOBQUEUE['ALERTS'] is not signed: "
                "its receiver cannot verify the sender.",
                hint='Give it "secrets": ["whsec_…"]. manage.py jobqueue alerts '
                "--new-secret prints one.",
                id="jobqueue.W041",
            )


def _callable(channel: ChannelConfig) -> Iterable[CheckMessage]:
    try:
        target = import_string(channel.to)
    except ImportError as error:
        yield Error(
            f"JOBQUEUE['ALERTS'] names {channel.to!r}, which cannot be used: {error}",
            hint=_near(channel.to),
            id="jobqueue.E040",
        )
    else:
        if not callable(target):
            yield Error(
                f"JOBQUEUE['ALERTS'] names {channel.to!r}, which cannot be called.",
                hint="Name a function that takes a Notification.",
                id="jobqueue.E040",
            )


def _near(path: str) -> str:
    """A likely correction of a dotted path that leads nowhere."""
    place, _, name = path.rpartition(".")
    try:
        near = get_close_matches(name, dir(import_module(place)), n=1)
    except (ImportError, ValueError):
        near = []
    if near:
        return f"Did you mean {f'{place}.{near[0]}'!r}?"
    return "Give the dotted path of a function, such as 'shop.alerts.notify'."
