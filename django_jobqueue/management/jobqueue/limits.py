"""``jobqueue limits``: limits by key, their keys, and overriding one."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from django_jobqueue import operations
from django_jobqueue.domain.policy import NO_LIMIT
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.detail_page import as_json
from django_jobqueue.management.jobqueue.override import (
    CODE,
    UNLIMITED,
    override_text,
)
from django_jobqueue.management.jobqueue.subcommand import by
from django_jobqueue.management.jobqueue.subcommand_verbs import (
    SubcommandWithVerbs,
    no_words,
)
from django_jobqueue.management.jobqueue.text_tables import Column, Row
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

Columns = tuple[Column, ...]

NONE: Final = "-"
LIMIT_COLUMNS: Final = (
    Column("Limit", breaks=True),
    Column("Of each key", right=True),
    Column("Override", right=True),
    Column("Rate", right=True),
    Column("Running", right=True),
    Column("Job types", breaks=True),
)
KEY_COLUMNS: Final[Columns] = (
    Column("Key", breaks=True),
    Column("Running", right=True),
    Column("Limit", right=True),
    Column("Override", right=True),
    Column("Waiting", right=True),
    Column("Oldest", right=True),
)
# Where a key has one.
RATE_COLUMNS: Final[Columns] = (Column("Rate", right=True),)
START_COLUMNS: Final[Columns] = (Column("Next start", right=True),)
SHARE_COLUMNS: Final[Columns] = (Column("Share", right=True),)


class Limits(SubcommandWithVerbs):
    """Lists limits by key and their keys, and overrides their numbers."""

    name = "limits"
    summary = "List limits by key; override one, or hold a key."
    verbs = ("list", "show", "override")
    wanted = "LIMIT [NUMBER]"
    description = """\
List the limits by key, show the keys of one, or override how many jobs of each
key run at once, or of one key alone:

  override  NUMBER is a number; "unlimited"; 0, which holds all keys or this
            one: its jobs wait; or "code", which clears the override

A limit has the name of its job type, or that of PerKey(name=...). No job that
runs is stopped.

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
start each time that it is its turn, instead of one: a number or "code"."""
    epilog = """\
--format json prints a list of {name, concurrency (declared; null is
unlimited), override (null: not set, -1: unlimited), limit (in force), running,
overridden_keys, rate and rate_override (of each key), strict (the order),
job_types}. Of show, a list of {key, running, limit, override, rate (in force),
rate_override, share, waiting (counted up to 100 in each lane), oldest (seconds;
negative until it is due, null if none waits), next_start (seconds until its
rate permits one, and its retry is due)}. Of override, {before, after}."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the key."""
        super().add_arguments(parser)
        parser.add_argument(
            "--key", metavar="KEY", help="Override the number of this key alone."
        )
        parser.add_argument(
            "--rate",
            metavar="RATE",
            help="Override the rate of each key, or of --key, instead.",
        )
        parser.add_argument(
            "--share", metavar="NUMBER", help="Override the share of --key, instead."
        )

    only_with = dict.fromkeys(("key", "rate", "share"), ("override",))

    def do(
        self, verb: str, words: list[str], console: Console, options: dict[str, Any]
    ) -> None:
        """List, show or override. Raises CommandError, InvalidArguments."""
        is_json = options["format"] == "json"
        if verb == "list":
            no_words(words)
            _list(console, is_json)
        elif verb == "show":
            if len(words) != 1:
                raise CommandError("Name one limit to show.")
            _show(console, words[0], is_json)
        else:
            given = [name for name in ("rate", "share") if options[name] is not None]
            if len(words) + len(given) != 2 or not words:
                raise CommandError(
                    "Name one limit, and the number to be in force, or --rate or "
                    "--share."
                )
            if "share" in given and options["key"] is None:
                raise CommandError("--share is of one key: give --key as well.")
            _override(console, words, options, is_json=is_json)


def _list(console: Console, is_json: bool) -> None:
    rows = limits(DjangoDatabase())
    if is_json:
        console.print(as_json([_limit_object(row) for row in rows]))
    elif rows:
        console.table(LIMIT_COLUMNS, [Row(_limit_cells(row)) for row in rows])
    else:
        console.print("No job type has a limit by key.")


def _show(console: Console, name: str, is_json: bool) -> None:
    db = DjangoDatabase()
    rows = limits(db, name)
    if not rows:
        hint = did_you_mean(name, [row.name for row in limits(db)])
        raise CommandError(f"There is no limit by key {name!r}.{hint}")
    limit = rows[0]
    keys = keys_of(db, limit)
    if limit.name not in open_limits():
        keys = [replace(key, key=MASK) for key in keys]
    if is_json:
        console.print(as_json([_key_object(limit, key) for key in keys]))
    elif keys:
        shown = [(KEY_COLUMNS, _key_cells)]
        has_rates = any(limit.rate_of(key) for key in keys)
        if has_rates:
            shown.append((RATE_COLUMNS, _rate_cells))
        if has_rates or limit.is_strict:
            shown.append((START_COLUMNS, _start_cells))
        if any(key.share is not None for key in keys):
            shown.append((SHARE_COLUMNS, _share_cells))
        console.table(
            [column for columns, _ in shown for column in columns],
            [
                Row([cell for _, cells in shown for cell in cells(limit, key)])
                for key in keys
            ],
        )
    else:
        console.print("No key has jobs or an override.")


def _override(
    console: Console, words: list[str], options: dict[str, Any], *, is_json: bool
) -> None:
    name, key = words[0], options["key"]
    if (rate := options["rate"]) is not None:
        wanted = None if rate == CODE else rate
        change = operations.override_key_rate(name, wanted, key=key, by=by())
    elif (share := options["share"]) is not None:
        change = operations.override_key_share(name, _share(share), key=key, by=by())
    else:
        change = operations.override_limit(name, _number(words[1]), key=key, by=by())
    if is_json:
        console.print(as_json({"before": change.before, "after": change.after}))
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


def _text(override: int | str | None) -> str:
    if isinstance(override, str):
        return override
    return override_text("concurrency", override)


def _limit_text(limit: int | None) -> str:
    return UNLIMITED if limit is None else numbers.number(limit)


def _limit_cells(row: LimitRow) -> list[str]:
    return [
        row.name,
        _limit_text(row.declared) + (", strict" if row.is_strict else ""),
        NONE if row.override is None else _text(row.override),
        NONE if row.rate is None else row.rate.text,
        numbers.number(row.running),
        ", ".join(row.job_types) or NONE,
    ]


def _key_cells(limit: LimitRow, row: KeyRow) -> list[str]:
    many = "+" if row.waiting >= MOST_WAITING else ""
    return [
        row.key,
        numbers.number(row.running),
        _limit_text(limit.of_key(row)),
        NONE if row.override is None else _text(row.override),
        numbers.number(row.waiting) + many,
        NONE if row.oldest is None or row.oldest < 0 else numbers.span(row.oldest),
    ]


def _rate_cells(limit: LimitRow, row: KeyRow) -> list[str]:
    rate = limit.rate_of(row)
    return [NONE if rate is None else rate.text]


def _start_cells(limit: LimitRow, row: KeyRow) -> list[str]:
    wait = limit.wait_of(row).total_seconds()
    return [f"in {numbers.span(ceil(wait))}" if wait else NONE]


def _share_cells(limit: LimitRow, row: KeyRow) -> list[str]:
    return [NONE if row.share is None else numbers.number(row.share)]


def _limit_object(row: LimitRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "concurrency": row.declared,
        "override": row.override,
        "limit": row.in_force,
        "running": row.running,
        "overridden_keys": row.overridden_keys,
        "rate": row.declared_rate,
        "rate_override": row.rate_override,
        "strict": row.is_strict,
        "job_types": list(row.job_types),
    }


def _key_object(limit: LimitRow, row: KeyRow) -> dict[str, Any]:
    rate = limit.rate_of(row)
    return {
        "key": row.key,
        "running": row.running,
        "limit": limit.of_key(row),
        "override": row.override,
        "rate": None if rate is None else rate.text,
        "rate_override": row.rate,
        "share": row.share,
        "waiting": row.waiting,
        "oldest": row.oldest,
        "next_start": limit.wait_of(row).total_seconds(),
    }
