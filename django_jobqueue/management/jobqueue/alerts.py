"""``jobqueue alerts``: lists alerts, and tries the channels."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from django_jobqueue.alerts import channels
from django_jobqueue.alerts.http_post import NotSent
from django_jobqueue.alerts.notification import Alert as Announced
from django_jobqueue.alerts.notification import Notification, alert_of
from django_jobqueue.conf import conf
from django_jobqueue.conf.alert_channels import SECRET_PREFIX, ChannelConfig
from django_jobqueue.domain.ids import new_id
from django_jobqueue.domain.states import AlertEvent, AlertState
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.detail_page import as_json
from django_jobqueue.management.jobqueue.subcommand import Subcommand, positive
from django_jobqueue.management.jobqueue.subcommand_verbs import add_format
from django_jobqueue.management.jobqueue.text_tables import Column, Row
from django_jobqueue.management.jobqueue.time_formats import local
from django_jobqueue.models import Alert
from django_jobqueue.store import alert_rows
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.text.suggestions import did_you_mean

COLORS: Final = {AlertState.FIRING: "red"}
COLUMNS: Final = (
    Column("Fired"),
    Column("State"),
    Column("Condition"),
    Column("Alert", breaks=True),
)
SECRET_BYTES: Final = 32


class Alerts(Subcommand):
    """Lists alerts, firing ones first, and sends one to try the channels."""

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
    epilog = """\
--format json prints a list of {id, condition, subject, state (reported, firing
or resolved), text, error, job_type, fired_at, resolved_at}; with --test, of
{channel, error (null: accepted)}."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add what is listed, or done."""
        parser.add_argument(
            "--firing", action="store_true", help="List those that are firing only."
        )
        parser.add_argument(
            "--limit",
            type=positive,
            default=20,
            metavar="N",
            help="List no more than this number (default: 20).",
        )
        parser.add_argument(
            "--test", action="store_true", help="Send a test to each channel."
        )
        parser.add_argument(
            "--channel", metavar="NAME", help="With --test: send to this one only."
        )
        parser.add_argument(
            "--new-secret",
            action="store_true",
            help="Print a new secret for a webhook.",
        )
        add_format(parser)

    def run(self, console: Console, options: dict[str, Any]) -> None:
        """Do it. Raises CommandError."""
        is_json = options["format"] == "json"
        if options["new_secret"]:
            random = base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
            console.print(SECRET_PREFIX + random)
        elif options["test"]:
            _test(console, _chosen(options["channel"]), is_json)
        elif options["channel"] is not None:
            raise CommandError("--channel goes with --test alone.")
        else:
            _list(console, _rows(options["firing"], options["limit"]), is_json)


def _rows(only_firing: bool, limit: int) -> list[tuple[Alert, Announced]]:
    alerts = Alert.objects.using(conf.database)
    firing = list(alerts.filter(state=AlertState.FIRING).order_by("-fired_at", "-id"))
    if not only_firing:
        others = alerts.exclude(state=AlertState.FIRING).order_by("-fired_at", "-id")
        firing += others[: max(0, limit - len(firing))]
    shown = {row.pk: row for row in firing[:limit]}
    news = alert_rows.alerts(DjangoDatabase(), list(shown))
    by_id = {one.id: alert_of(one) for one in news}
    return [(row, by_id[id]) for id, row in shown.items() if id in by_id]


def _list(console: Console, rows: list[tuple[Alert, Announced]], is_json: bool) -> None:
    if is_json:
        console.print(as_json([_as_object(*one) for one in rows]))
    elif rows:
        console.table(COLUMNS, [_row(*one) for one in rows])
    else:
        console.print("There is no alert.")
    if not conf.alerts and not is_json:
        console.warn('Alerts are off: JOBQUEUE["ALERTS"] is empty.')


def _as_object(row: Alert, alert: Announced) -> dict[str, Any]:
    content = alert.as_json()
    del content["event"], content["url"]
    return {**content, "state": row.state}


def _row(row: Alert, alert: Announced) -> Row:
    text = f"{alert.text}: {alert.error}" if alert.error else alert.text
    cells = [local(row.fired_at), str(row.state), str(row.condition), text]
    return Row(cells, COLORS.get(AlertState(row.state), ""))


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


def _test(console: Console, chosen: Iterable[ChannelConfig], is_json: bool) -> None:
    """Send to each, and say what came of it. Raises CommandError if one failed."""
    errors: dict[str, str | None] = {}
    for channel in chosen:
        try:
            channels.send(channel, _notification())
        except NotSent as error:
            errors[channel.name] = str(error)
            if not is_json:
                console.warn(f"{channel.name}: {error}")
        else:
            errors[channel.name] = None
            if not is_json:
                console.print(f"{channel.name}: accepted")
    if is_json:
        console.print(
            as_json([{"channel": name, "error": errors[name]} for name in errors])
        )
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
