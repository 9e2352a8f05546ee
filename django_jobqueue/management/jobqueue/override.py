"""``jobqueue override``: override the policy of job types."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from django.core.management.base import CommandError
from django.db import transaction

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.domain.job_options import OVERRIDES
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.inputs import duration
from django_jobqueue.management.jobqueue.subcommand import Options, Subcommand, by
from django_jobqueue.store.job_types import Change
from django_jobqueue.text import numbers
from django_jobqueue.text.durations import DURATIONS
from django_jobqueue.verbs.declarations import Argument, flag

CODE: Final = "code"  # the value that lets the code decide again
UNLIMITED: Final = "unlimited"


class Override(Subcommand):
    name = "override"
    summary = "Override policies of job types, or clear overrides."
    description = """\
Override the policy that the code declares for job types, in the whole cluster
and without a restart, until you clear the override. Any value may be "code",
which clears the override; --clear does that for all options.

  jobqueue override shop.send_receipt --concurrency 2 --timeout 5m
  jobqueue override shop.send_receipt --timeout code
  jobqueue override shop.send_receipt shop.send_invoice --clear

All job types are changed, or none. "jobqueue types show TYPE" shows the values
in force and where they come from."""
    json = """one object: for each job type the options that changed, each with its
    value before and after. null means no override, -1 means unlimited, and
    durations are in seconds: a timeout of 0 means unlimited."""

    def all_arguments(self) -> Iterator[Argument]:
        yield Argument("names", "Names of job types.", "TYPE", words="+")
        for option, override in OVERRIDES.items():
            metavar = "DURATION" if override.is_duration else "NUMBER"
            if override.is_text:
                metavar = "RATE" if option == "rate" else "TEXT"
            yield Argument(option, _help(option), metavar)
        yield flag("clear", "Clear all overrides of these types.")
        yield from super().all_arguments()

    def run(self, console: Console, options: Options) -> None:
        values: Any = {
            option: _value(option, str(options[option]))
            for option in OVERRIDES
            if options[option] is not None
        }
        if options["clear"] and values:
            raise CommandError("--clear clears all overrides; give no other option.")
        if options["clear"]:
            values = dict.fromkeys(OVERRIDES)
        if not values:
            flags = ", ".join(map(_flag, OVERRIDES))
            raise CommandError(f"Name the options to override: {flags}; or --clear.")
        names = dict.fromkeys(options["names"])
        with transaction.atomic(using=conf.database):
            changed = {
                name: operations.override(name, by=by(), **values) for name in names
            }
        if console.is_json:
            console.json({n: _as_object(c) for n, c in changed.items()})
            return
        for name, changes in changed.items():
            parts = [_change_text(option, one) for option, one in changes.items()]
            console.info(f"{name}: {', '.join(parts) or 'nothing changed'}.")


def override_text(option: str, value: Any) -> str:
    """The value of an override, as it is written on the command line."""
    if value is None:
        return CODE
    if value == OVERRIDES[option].unlimited:
        return UNLIMITED
    if OVERRIDES[option].is_text:
        return repr(value) if option == "summary" else str(value)
    is_duration = OVERRIDES[option].is_duration
    return numbers.length(value) if is_duration else numbers.number(value)


def _help(option: str) -> str:
    """The help of a flag, with what can be written there."""
    override = OVERRIDES[option]
    sentences = [override.help]
    if override.is_duration:
        sentences.append(f"Write {DURATIONS}.")
    if override.unlimited is not None:
        sentences.append(f'"{UNLIMITED}" lifts the limit.')
    return " ".join(sentences)


def _value(option: str, text: str) -> Any:
    """The override that this text states; None lets the code decide. Raises
    CommandError."""
    override = OVERRIDES[option]
    if text == CODE:
        return None
    if override.is_text:
        return text
    is_limit = override.unlimited is not None
    if text == UNLIMITED and is_limit:
        return override.unlimited
    words = f"{CODE} or {UNLIMITED}" if is_limit else CODE
    if override.is_duration:
        return duration(_flag(option), text, f"{DURATIONS}; or {words}")
    try:
        return int(text)
    except ValueError:
        raise CommandError(
            f"{_flag(option)}: must be a whole number, {words}, not {text!r}."
        ) from None


def _flag(option: str) -> str:
    return "--" + option.replace("_", "-")


def _change_text(option: str, change: Change) -> str:
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
