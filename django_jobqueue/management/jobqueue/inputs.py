"""Reads what somebody typed: durations, moments, data, ids of jobs, queues."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Final

from django.core.management.base import CommandError
from django.utils import timezone

from django_jobqueue.conf import conf
from django_jobqueue.domain.arguments import Annotations
from django_jobqueue.domain.policy import LONGEST
from django_jobqueue.domain.registry import registry
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.subcommand import flag_of
from django_jobqueue.models import JobType, Queue, Worker
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import stats
from django_jobqueue.text import timezones
from django_jobqueue.text.durations import DURATIONS, TIMES, duration_of
from django_jobqueue.text.suggestions import did_you_mean
from django_jobqueue.verbs.columns import local
from django_jobqueue.verbs.declarations import Argument, Takes


def duration(flag: str, text: str | timedelta, accepted: str = DURATIONS) -> timedelta:
    """The duration that was given with this flag; ``accepted`` is what can be written
    there, for the error. Raises CommandError."""
    if isinstance(text, timedelta):
        return text
    length = duration_of(str(text))
    if length is None:
        raise CommandError(f"{flag}: {text!r} is not a duration. Write {accepted}.")
    if length > LONGEST:
        raise CommandError(f"{flag}: {text!r} is more than a hundred years.")
    return length


def moment(
    flag: str, text: str | timedelta | datetime, *, now: datetime, ago: bool = False
) -> datetime:
    """The time that was given with this flag; a duration counts from ``now``, or back
    from it. Raises CommandError."""
    if isinstance(text, datetime):
        return text
    if isinstance(text, timedelta) or duration_of(text) is not None:
        length = duration(flag, text)
        return now - length if ago else now + length
    try:
        parsed = datetime.fromisoformat(text)
        return timezones.aware(parsed)
    except (ValueError, OverflowError):
        zone = timezone.get_current_timezone_name()
        raise CommandError(
            f"{flag}: {text!r} is not a time. Write {TIMES}; without an offset it is "
            f"in the time zone {zone}."
        ) from None


UNKNOWN: Final = Annotations(None)  # of a handler that is not known here
ACCEPTED: Final = "Give one JSON object, or key=value pairs."


def values_of(
    arguments: Iterable[Argument], options: dict[str, Any], now: datetime
) -> dict[str, Any]:
    """The values of those that were given, as the function of a verb takes them.
    Raises CommandError."""
    values = {}
    for one in arguments:
        flag, name = flag_of(one), one.name
        if one.takes is Takes.END:
            flag, name = "--until", "until"
            if options["for_"] is not None:
                values[one.name] = now + duration("--for", options["for_"])
                continue
        value = options[name]
        if value is None:
            if one.required:
                raise CommandError(one.required)
            continue
        if one.takes in (Takes.MOMENT, Takes.END):
            value = moment(flag, value, now=now)
            if (one.is_to_come or one.takes is Takes.END) and value <= now:
                raise CommandError(f"{flag}: {local(value)} is past.")
        values[one.name] = value
    return values


def data_of(words: list[str], annotations: Annotations = UNKNOWN) -> dict[str, Any]:
    """The data that these words of the command line state; ``annotations`` are those of
    the handler, if it is known. Raises CommandError."""
    if words == ["-"]:
        return object_of(sys.stdin.read())
    if len(words) == 1 and words[0].lstrip()[:1] in ("{", "["):
        return object_of(words[0])
    data: dict[str, Any] = {}
    for word in words:
        key, sign, text = word.partition("=")
        if not sign or not key:
            raise CommandError(f"{word!r} is not a key=value pair. {ACCEPTED}")
        if key in data:
            raise CommandError(f"{key!r} is given twice.")
        data[key] = _value(key, text, annotations)
    return data


def object_of(text: str, accepted: str = ACCEPTED) -> dict[str, Any]:
    """The JSON object that this text is. Raises CommandError."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"The data is not JSON: {error}. {accepted}") from None
    if not isinstance(data, dict):
        raise CommandError(
            f"The data must be an object, not {type(data).__name__}. {accepted}"
        )
    return data


def _value(key: str, text: str, annotations: Annotations) -> Any:
    """The text as JSON, unless it is none, or unless the parameter wants a text."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text
    wants_text = not annotations.misfits({key: text})
    return text if wants_text and annotations.misfits({key: value}) else value


def _no_constant(name: str) -> None:
    """Python's JSON has NaN and Infinity, which is text here."""
    raise ValueError(name)


def warn_of_unknown(console: Console, names: Iterable[str]) -> None:
    """Remark on queues that nothing names. A queue needs no declaration, so any name is
    right, but most others are slips."""
    if not console.verbosity or conf.mode != "queue":
        return
    known = _known_queues()
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            console.warn(f"No job type, worker or job names the queue {name!r}.{hint}")


def _known_queues() -> set[str]:
    alias = conf.database
    subscribed = Worker.objects.using(alias).values_list("queues", flat=True)
    return {
        *(declaration.policy.queue for declaration in registry),
        *JobType.objects.using(alias).values_list("queue", flat=True),
        *Queue.objects.using(alias).values_list("name", flat=True),
        *chain.from_iterable(queues for queues in subscribed if queues),
        *(depth.queue for depth in stats.depths(DjangoDatabase())),
    }


def known_names(
    what: str, names: Sequence[str], known: Iterable[str], verb: str
) -> None:
    """Raises CommandError without a name, or for one that is not known."""
    if not names:
        raise CommandError(f"Name the {what}s to {verb}.")
    there = set(known)
    for name in names:
        if name not in there:
            hint = did_you_mean(name, there)
            raise CommandError(f"There is no {what} {name!r}.{hint}")


def chosen(
    what: str,
    words: Sequence[str],
    options: dict[str, Any],
    living: Any,
    *,
    needs_choice: bool,
) -> list[Any]:
    """The rows of workers or hosts that are meant, of those that are ``living``. Raises
    CommandError."""
    filters = {name: options[name] for name in ("host", "release") if options[name]}
    choices = "--host, --release or --all"
    ways = sum(map(bool, (words, filters or options["all"])))
    if ways > 1:
        raise CommandError(f"Name {what}s or choose them by {choices}, not both.")
    if needs_choice and not ways:
        by_id = " by id or name" if what == "worker" else ""
        raise CommandError(f"Name {what}s{by_id}, or choose them by {choices}.")
    rows = list(living.filter(**filters))
    if words:
        return [
            row for word in dict.fromkeys(words) for row in _named(what, word, rows)
        ]
    if filters and not rows:
        flags = " and ".join(f"--{name} {value}" for name, value in filters.items())
        raise CommandError(f"No living {what} has {flags}.")
    return rows


def _named(what: str, word: str, rows: Sequence[Any]) -> list[Any]:
    """Those with this id or name: several workers that are embedded in one process
    share the name of their host. Raises CommandError."""
    named = [row for row in rows if word in (str(row.pk), row.name)]
    if not named:
        names = [row.name for row in rows]
        names += map(str, (row.pk for row in rows)) if what == "worker" else ()
        hint = did_you_mean(word, names)
        raise CommandError(f"There is no living {what} {word!r}.{hint}")
    return named[-1:] if what == "worker" else named
