"""``jobqueue limits``: limits by key, their keys, and overriding one."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Final, NamedTuple

from django.core.management.base import CommandError

from django_jobqueue import operations
from django_jobqueue.domain.policy import NO_LIMIT
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.override import CODE, UNLIMITED, override_text
from django_jobqueue.management.jobqueue.subcommand import (
    Options,
    SubcommandWithVerbs,
    Words,
    by,
    no_words,
)
from django_jobqueue.stats.open_limits import open_limits
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading.limit_keys import (
    MOST_WAITING,
    KeyRow,
    LimitRow,
    keys_of,
    limits,
)
from django_jobqueue.text import numbers
from django_jobqueue.text.redaction import MASK
from django_jobqueue.text.suggestions import did_you_mean
from django_jobqueue.verbs.columns import (
    NAMES,
    NUMBER,
    RIGHT,
    SPAN,
    Column,
    Listing,
    Type,
)
from django_jobqueue.verbs.declarations import Argument, only


def _text(override: int | str | None) -> str:
    if isinstance(override, str):
        return override
    return override_text("concurrency", override)


def _declared(row: LimitRow) -> str:
    number = LIMIT.none if row.declared is None else LIMIT.text(row.declared)
    return f"{number}, strict" if row.is_strict else number


def _rate(row: LimitRow) -> str | None:
    return None if row.rate is None else row.rate.text


class Key(NamedTuple):
    """A key of a limit, and what holds for it."""

    of: LimitRow
    row: KeyRow

    @property
    def limit(self) -> int | None:
        """How many of its jobs run at once."""
        return self.of.of_key(self.row)

    @property
    def rate(self) -> str | None:
        """As it is written."""
        rate = self.of.rate_of(self.row)
        return None if rate is None else rate.text

    @property
    def next_start(self) -> float:
        """In so many seconds."""
        return self.of.wait_of(self.row).total_seconds()

    @property
    def waiting_text(self) -> str:
        """How many of its jobs wait."""
        many = "+" if self.row.waiting >= MOST_WAITING else ""
        return numbers.number(self.row.waiting) + many

    @property
    def waits(self) -> float | None:
        """How long the oldest one has waited; None until it is due."""
        oldest = self.row.oldest
        return None if oldest is None or oldest < 0 else oldest


OVERRIDE: Final = Type(_text, right=True)
LIMIT: Final = Type(numbers.number, right=True, none=UNLIMITED)
START: Final = Type(lambda s: f"in {numbers.span(ceil(s))}" if s else "-", right=True)
LIMITS: Final = Listing(
    (
        Column("name", "Limit", breaks=True),
        Column("", "Of each key", RIGHT, _declared),
        Column("concurrency", "", NUMBER, "declared", "declared; null is unlimited"),
        Column("override", "Override", OVERRIDE, note="null: not set, -1: unlimited"),
        Column("limit", "", NUMBER, "in_force", "in force"),
        Column("", "Rate", RIGHT, _rate),
        Column("running", "Running", NUMBER),
        Column("overridden_keys"),
        Column("rate", value="declared_rate"),
        Column("rate_override", note="rates are of each key"),
        Column("strict", value="is_strict", note="the order"),
        Column("job_types", "Job types", NAMES, breaks=True),
    ),
    "No job type has a limit by key.",
)
KEYS: Final = Listing(
    (
        Column("key", "Key", value="row.key", breaks=True),
        Column("running", "Running", NUMBER, "row.running"),
        Column("limit", "Limit", LIMIT),
        Column("override", "Override", OVERRIDE, "row.override"),
        Column("rate", note="in force"),
        Column("rate_override", value="row.rate"),
        Column("share", value="row.share"),
        Column("", "Waiting", RIGHT, "waiting_text"),
        Column("waiting", "", NUMBER, "row.waiting", "counted up to 100 in each lane"),
        Column("", "Oldest", SPAN, "waits"),
        Column(
            "oldest",
            value="row.oldest",
            note="seconds; negative until it is due, null if none waits",
        ),
        Column("", "Rate", RIGHT, "rate"),
        Column(
            "next_start",
            "Next start",
            START,
            note="seconds until its rate permits one, and its retry is due",
        ),
        Column("", "Share", NUMBER, "row.share"),
    ),
    "No key has jobs or an override.",
)


class Limits(SubcommandWithVerbs):
    name = "limits"
    summary = "List limits by key; override one, or hold a key."
    verbs = ("list", "show", "override")
    wanted = "LIMIT [NUMBER]"
    description = """\
List the limits by key, show the keys of one, or override how many jobs of each
key, or of one key, run at once:

  override  NUMBER is a number; "unlimited"; 0, which holds all keys or this
            one: its jobs wait; or "code", which clears the override

A limit is named after its job type, or by PerKey(name=...). Running jobs go on.

  jobqueue limits
  jobqueue limits show shop.export
  jobqueue limits override shop.export 2
  jobqueue limits override shop.export 0 --key 7
  jobqueue limits override shop.export code --key 7
  jobqueue limits override shop.export --rate 10/s
  jobqueue limits override shop.export --rate 50/s --key 7
  jobqueue limits override shop.export --share 3 --key 7

A rate is how many jobs of each key start in any window of time: such as 10/s,
100/m, "10/s burst 3", "unlimited" or "code". A share is how many jobs of a key
start per turn, instead of one: a number or "code"."""
    json = f"""a list of {LIMITS.keys}. Of show, a list of {KEYS.keys}. Of override,
    {{before, after}}."""
    arguments = only(
        "override",
        Argument("key", "Override the number of this key only.", "KEY"),
        Argument(
            "rate", "Override the rate of each key, or of --key, instead.", "RATE"
        ),
        Argument("share", "Override the share of --key, instead.", "NUMBER"),
    )

    def do(self, verb: str, words: Words, console: Console, options: Options) -> None:
        if verb == "list":
            no_words(words)
            console.rows(LIMITS, limits(DjangoDatabase()))
        elif verb == "show":
            if len(words) != 1:
                raise CommandError("Name one limit to show.")
            _show(console, words[0])
        else:
            given = [name for name in ("rate", "share") if options[name] is not None]
            if len(words) + len(given) != 2 or not words:
                raise CommandError(
                    "Name one limit, and a number, or --rate or --share."
                )
            if "share" in given and options["key"] is None:
                raise CommandError("--share belongs to one key: give --key, too.")
            _override(console, words, options)


def _show(console: Console, name: str) -> None:
    db = DjangoDatabase()
    rows = limits(db, name)
    if not rows:
        hint = did_you_mean(name, [row.name for row in limits(db)])
        raise CommandError(f"There is no limit by key {name!r}.{hint}")
    limit = rows[0]
    keys = keys_of(db, limit)
    if limit.name not in open_limits():
        keys = [replace(key, key=MASK) for key in keys]
    unused = []  # columns that say nothing here
    if not any(limit.rate_of(key) for key in keys):
        unused += ["Rate"] if limit.is_strict else ["Rate", "Next start"]
    if all(key.share is None for key in keys):
        unused.append("Share")
    console.rows(KEYS.without(*unused), [Key(limit, key) for key in keys])


def _override(console: Console, words: list[str], options: Options) -> None:
    name, key = words[0], options["key"]
    if (rate := options["rate"]) is not None:
        wanted = None if rate == CODE else rate
        change = operations.override_key_rate(name, wanted, key=key, by=by())
    elif (share := options["share"]) is not None:
        change = operations.override_key_share(name, _share(share), key=key, by=by())
    else:
        change = operations.override_limit(name, _number(words[1]), key=key, by=by())
    if console.is_json:
        console.json({"before": change.before, "after": change.after})
        return
    of = name if key is None else f"{name}, key {key}"
    if change.before == change.after:
        console.info(f"{of}: nothing changed.")
    else:
        console.info(f"{of}: {_text(change.before)} → {_text(change.after)}.")


def _number(text: str) -> int | None:
    """The override that this text states; None clears it. Raises CommandError."""
    return NO_LIMIT if text == UNLIMITED else _share(text, f"{CODE} or {UNLIMITED}")


def _share(text: str, words: str = CODE) -> int | None:
    if text == CODE:
        return None
    try:
        return int(text)
    except ValueError:
        raise CommandError(
            f"The number must be a whole number, {words}, not {text!r}."
        ) from None
