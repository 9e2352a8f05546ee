"""``jobqueue alerts``: lists alerts, and tries the channels."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, NamedTuple

from django.core.management.base import CommandError

from django_jobqueue.conf import conf
from django_jobqueue.conf.alert_channels import SECRET_PREFIX, ChannelConfig
from django_jobqueue.contrib.alerts import alert_rows, channels
from django_jobqueue.contrib.alerts.http_post import NotSent
from django_jobqueue.contrib.alerts.models import Alert
from django_jobqueue.contrib.alerts.notification import Alert as Announced
from django_jobqueue.contrib.alerts.notification import Notification, alert_of
from django_jobqueue.contrib.alerts.states import AlertEvent, AlertState
from django_jobqueue.domain.ids import new_id
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.subcommand import Options, Subcommand
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.text.suggestions import did_you_mean
from django_jobqueue.verbs.columns import MOMENT, Column, Listing, only_json
from django_jobqueue.verbs.declarations import Argument, Takes, flag


class Listed(NamedTuple):
    """An alert, and what was announced of it."""

    row: Alert
    alert: Announced


ALERTS: Final = Listing(
    (
        Column("", "Fired", MOMENT, "row.fired_at"),
        Column("", "State", value="row.state"),
        *only_json("id", "alert"),
        Column("condition", "Condition", value="alert.condition"),
        Column("", "Alert", value=lambda one: _text(one.alert), breaks=True),
        *only_json("subject text error job_type fired_at resolved_at", "alert"),
        Column("state", value="row.state", note="reported, firing or resolved"),
    ),
    "There is no alert.",
    color=lambda row: "red" if row.row.state == AlertState.FIRING else "",
)
SECRET_BYTES: Final = 32


class Alerts(Subcommand):
    name = "alerts"
    summary = "List alerts, firing ones first; try the channels."
    description = """\
List the alerts of the last 90 days: those that are firing, then the newest. Or
send a test to the channels of JOBQUEUE["ALERTS"]; nothing is retried, and the
exit code is 1 if a channel does not accept it.

  jobqueue alerts
  jobqueue alerts --firing
  jobqueue alerts --test
  jobqueue alerts --test --channel pager"""
    json = f"""a list of {ALERTS.keys}; with --test, of {{channel, error (null:
    accepted)}}."""
    arguments = (
        flag("firing", "List only firing alerts."),
        Argument(
            "limit",
            "List no more than this number (default: 20).",
            Takes.POSITIVE,
            default=20,
        ),
        flag("test", "Send a test to each channel."),
        Argument("channel", "With --test: send to this one only.", "NAME"),
        flag("new_secret", "Print a new secret for a webhook."),
    )

    def run(self, console: Console, options: Options) -> None:
        if options["new_secret"]:
            random = base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
            console.print(SECRET_PREFIX + random)
        elif options["test"]:
            _test(console, _chosen(options["channel"]))
        elif options["channel"] is not None:
            raise CommandError("--channel works only with --test.")
        else:
            console.rows(ALERTS, _rows(options["firing"], options["limit"]))
            if not conf.alerts and not console.is_json:
                console.warn('Alerts are off: JOBQUEUE["ALERTS"] is empty.')


def _rows(only_firing: bool, limit: int) -> list[Listed]:
    alerts = Alert.objects.using(conf.database)
    firing = list(alerts.filter(state=AlertState.FIRING).order_by("-fired_at", "-id"))
    if not only_firing:
        others = alerts.exclude(state=AlertState.FIRING).order_by("-fired_at", "-id")
        firing += others[: max(0, limit - len(firing))]
    shown = {row.pk: row for row in firing[:limit]}
    news = alert_rows.alerts(DjangoDatabase(), list(shown))
    by_id = {one.id: alert_of(one) for one in news}
    return [Listed(row, by_id[id]) for id, row in shown.items() if id in by_id]


def _text(alert: Announced) -> str:
    return f"{alert.text}: {alert.error}" if alert.error else alert.text


def _chosen(name: str | None) -> list[ChannelConfig]:
    if not conf.alerts:
        raise CommandError('JOBQUEUE["ALERTS"] has no channel.')
    if name is None:
        return list(conf.alerts)
    named = [channel for channel in conf.alerts if channel.name == name]
    if not named:
        known = [channel.name for channel in conf.alerts]
        hint = did_you_mean(name, known) or f" There are {', '.join(known)}."
        raise CommandError(f"There is no channel {name!r}.{hint}")
    return named


def _test(console: Console, chosen: Iterable[ChannelConfig]) -> None:
    """Send to each, and say what came of it. Raises CommandError if one failed."""
    errors: dict[str, str | None] = {}
    for channel in chosen:
        try:
            channels.send(channel, _notification())
        except NotSent as error:
            errors[channel.name] = str(error)
            if not console.is_json:
                console.warn(f"{channel.name}: {error}")
        else:
            errors[channel.name] = None
            if not console.is_json:
                console.print(f"{channel.name}: accepted")
    if console.is_json:
        console.json([{"channel": name, "error": errors[name]} for name in errors])
    failed = [name for name, error in errors.items() if error is not None]
    if failed:
        raise CommandError(f"Not accepted by {', '.join(failed)}.")


def _notification() -> Notification:
    test = Announced(
        id=new_id(),
        event=AlertEvent.FIRED,
        condition="test",
        subject="",
        text="This is a test of the alerts of the job queue.",
        fired_at=datetime.now(UTC),
    )
    return Notification(id=new_id(), alerts=[test], is_test=True)
