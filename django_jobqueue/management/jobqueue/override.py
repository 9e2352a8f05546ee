"""``jobqueue override``: say something else than the code about job types."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.domain.policy import NO_LIMIT
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.facts import as_json
from django_jobqueue.management.jobqueue.subcommand import Subcommand, by
from django_jobqueue.management.jobqueue.times import DURATIONS, duration
from django_jobqueue.management.jobqueue.verbs import add_format
from django_jobqueue.store.job_types import Change
from django_jobqueue.text import numbers

CODE: Final = "code"  # the value that lets the code decide again
UNLIMITED: Final = "unlimited"
NUMBERS: Final = ("priority", "max_attempts", "concurrency")
SPANS: Final = ("timeout", "keep_succeeded", "keep_unsuccessful")
HELP: Final = {
    "priority": "From -100 to 100, greater is sooner; for jobs enqueued from now on.",
    "max_attempts": "Attempts of a job, the first one included; or unlimited.",
    "timeout": f"Of an attempt: {DURATIONS}; or unlimited.",
    "concurrency": "How many run at once in the whole cluster; 0 pauses; or unlimited.",
    "keep_succeeded": "How long succeeded jobs are kept in the archive.",
    "keep_unsuccessful": "How long other jobs are kept in the archive.",
}


class Override(Subcommand):
    """Overrides the policy of job types, or clears overrides."""

    name = "override"
    summary = "Override policies of job types, or clear overrides."
    rest = "names"
    description = """\
Say something else than the code about job types, in the whole cluster and
without a restart, until it is cleared. Any value may be "code", which lets the
code decide again; --clear does that for all.

  jobqueue override shop.send_receipt --concurrency 2 --timeout 5m
  jobqueue override shop.send_receipt --timeout code
  jobqueue override shop.send_receipt shop.send_invoice --clear

All job types are changed or none. "jobqueue types show TYPE" shows what holds,
and where it comes from."""
    epilog = """\
--format json prints one object: of each job type what was changed, each with
its value before and after; null is what the code says, -1 unlimited, and
durations are in seconds, 0 for unlimited."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the job types, and a flag for each override."""
        parser.add_argument(
            "names", metavar="TYPE", nargs="+", help="Names of job types."
        )
        for option, text in HELP.items():
            metavar = "NUMBER" if option in NUMBERS else "DURATION"
            parser.add_argument(_flag(option), metavar=metavar, help=text)
        parser.add_argument(
            "--clear", action="store_true", help="Clear all overrides of these types."
        )
        add_format(parser)

    def run(self, console: Console, options: dict[str, Any]) -> None:
        """Change all of them or none. Raises CommandError, UnknownJobType."""
        said = {
            option: _value(option, str(options[option]))
            for option in HELP
            if options[option] is not None
        }
        if options["clear"] and said:
            raise CommandError("--clear clears all; say either it or single overrides.")
        if not options["clear"] and not said:
            flags = ", ".join(map(_flag, HELP))
            raise CommandError(f"Say what to override: {flags}; or --clear.")
        values = dict.fromkeys(HELP) if options["clear"] else said
        names = dict.fromkeys(options["names"])
        with transaction.atomic(using=conf.database):
            changed = {
                name: operations.override(name, **values, by=by()) for name in names
            }
        if options["format"] == "json":
            console.print(as_json({n: _as_object(c) for n, c in changed.items()}))
            return
        for name, changes in changed.items():
            parts = [_told(option, change) for option, change in changes.items()]
            console.say(f"{name}: {', '.join(parts) or 'nothing changed'}.")


def override_text(option: str, value: Any) -> str:
    """What an override says; the code decides without one."""
    if value is None:
        return CODE
    if option in SPANS:
        is_none = option == "timeout" and not value
        return UNLIMITED if is_none else numbers.length(value)
    is_none = option != "priority" and value == NO_LIMIT
    return UNLIMITED if is_none else numbers.number(value)


def _value(option: str, text: str) -> Any:
    """The override that this text states; None lets the code decide. Raises
    CommandError."""
    if text == CODE:
        return None
    is_limit = option not in ("priority", *SPANS[1:])
    if text == UNLIMITED and is_limit:
        return timedelta(0) if option in SPANS else NO_LIMIT
    words = f"{CODE} or {UNLIMITED}" if is_limit else CODE
    if option in SPANS:
        return duration(_flag(option), text, f"{DURATIONS}; or {words}")
    try:
        return int(text)
    except ValueError:
        raise CommandError(
            f"{_flag(option)}: must be a whole number, {words}, not {text!r}."
        ) from None


def _flag(option: str) -> str:
    return "--" + option.replace("_", "-")


def _told(option: str, change: Change) -> str:
    before, after = (
        override_text(option, value) for value in (change.before, change.after)
    )
    return f"{option.replace('_', ' ')} {before} → {after}"


def _as_object(changes: dict[str, Change]) -> dict[str, Any]:
    return {
        option: {"before": _plain(change.before), "after": _plain(change.after)}
        for option, change in changes.items()
    }


def _plain(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value
