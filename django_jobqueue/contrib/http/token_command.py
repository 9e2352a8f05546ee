"""``jobqueue token``: which programs may use the HTTP API."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from django_jobqueue.contrib.http.api_tokens import Scope, patterns_of
from django_jobqueue.contrib.http.token_rows import TokenRow, tokens
from django_jobqueue.contrib.http.tokens import create_token, revoke_tokens
from django_jobqueue.management.jobqueue.console import Console, counted
from django_jobqueue.management.jobqueue.detail_page import as_json
from django_jobqueue.management.jobqueue.subcommand import by
from django_jobqueue.management.jobqueue.subcommand_verbs import (
    SubcommandWithVerbs,
    no_words,
)
from django_jobqueue.management.jobqueue.text_tables import Column, Row
from django_jobqueue.management.jobqueue.time_formats import local, moment
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.text import timezones
from django_jobqueue.text.suggestions import did_you_mean

NONE: Final = "-"
EVERY: Final = "every"
COLORS: Final = {"expired": "yellow", "revoked": "yellow"}
COLUMNS: Final = (
    Column("Token", breaks=True),
    Column("State"),
    Column("May", breaks=True),
    Column("Job types", breaks=True),
    Column("Queues", breaks=True),
    Column("Expires"),
    Column("Last used"),
)


class Tokens(SubcommandWithVerbs):
    """Lists, creates and revokes tokens."""

    name = "token"
    summary = "List tokens of the HTTP API; create or revoke them."
    verbs = ("list", "create", "revoke")
    wanted = "NAME ..."
    description = """\
List the tokens by which programs use the HTTP API, make one, or revoke some:

  create  prints the token, once: only its hash is stored
  revoke  it opens nothing any more, from the next request on

--may takes scopes: enqueue, read (jobs without their data), read-data (with
them, secrets masked), operate and work (of remote workers). --types and
--queues bound them to names, or patterns.

  jobqueue token create billing --may enqueue,read --types 'shop.*'
  jobqueue token revoke billing"""
    epilog = """\
--format json prints a list of {name, state (valid, expired or revoked), scopes,
job_types, queues (patterns; empty is every one), created_at, created_by,
expires_at, last_used_at (to the hour), revoked_at}. Of create, such an object
with the token. Of revoke, the list of the names that were revoked."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add what a token allows."""
        super().add_arguments(parser)
        parser.add_argument(
            "--may", metavar="SCOPES", help=f"What it allows: {', '.join(Scope)}."
        )
        parser.add_argument(
            "--types", metavar="PATTERNS", help="Only these job types: 'shop.*,mail'."
        )
        parser.add_argument(
            "--queues", metavar="PATTERNS", help="Only jobs of these queues."
        )
        parser.add_argument(
            "--expires", metavar="WHEN", help="A moment, or a time from now: 90d."
        )
        parser.add_argument(
            "--all", action="store_true", help="List revoked ones, too."
        )

    only_with = {
        "may": ("create",),
        "types": ("create",),
        "queues": ("create",),
        "expires": ("create",),
        "all": ("list",),
    }

    def do(
        self, verb: str, words: list[str], console: Console, options: dict[str, Any]
    ) -> None:
        """List, create or revoke. Raises CommandError, InvalidArguments."""
        is_json = options["format"] == "json"
        if verb == "list":
            no_words(words)
            _list(console, options["all"], is_json)
        elif verb == "create":
            _create(console, words, options, is_json)
        else:
            _revoke(console, words, is_json)


def _list(console: Console, revoked: bool, is_json: bool) -> None:
    rows = [
        row for row in tokens(DjangoDatabase()) if revoked or row.revoked_at is None
    ]
    if is_json:
        console.print(as_json([_as_object(row) for row in rows]))
    elif rows:
        console.table(
            COLUMNS, [Row(_cells(row), COLORS.get(row.state, "")) for row in rows]
        )
    else:
        console.print("There is no token.")


def _create(
    console: Console, words: list[str], options: dict[str, Any], is_json: bool
) -> None:
    if len(words) != 1:
        raise CommandError("Name the token to create, by the program that gets it.")
    if not options["may"]:
        raise CommandError(f"Say what it allows: --may {','.join(Scope)}.")
    made = create_token(
        words[0],
        patterns_of(options["may"]),
        job_types=patterns_of(options["types"] or ""),
        queues=patterns_of(options["queues"] or ""),
        expires_at=_moment(options["expires"]),
        by=by(),
    )
    if is_json:
        console.print(as_json({**_as_object(made.row), "token": made.text}))
        return
    console.print(made.text)
    console.warn("Keep it: it cannot be shown again.")


def _revoke(console: Console, names: list[str], is_json: bool) -> None:
    if not names:
        raise CommandError("Name the tokens to revoke.")
    known = {row.name for row in tokens(DjangoDatabase())}
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise CommandError(f"There is no token {name!r}.{hint}")
    revoked = revoke_tokens(names, by=by())
    if is_json:
        console.print(as_json(revoked))
        return
    were = "was" if len(revoked) == 1 else "were"
    console.info(f"{counted(len(revoked), 'token')} {were} revoked.")


def _moment(text: str | None) -> datetime | None:
    return None if text is None else moment("--expires", text, now=timezones.now())


def _as_object(row: TokenRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "state": row.state,
        "scopes": sorted(row.grant.scopes),
        "job_types": list(row.grant.job_types),
        "queues": list(row.grant.queues),
        "created_at": row.created_at,
        "created_by": row.created_by,
        "expires_at": row.expires_at,
        "last_used_at": row.last_used_at,
        "revoked_at": row.revoked_at,
    }


def _cells(row: TokenRow) -> list[str]:
    return [
        row.name,
        row.state,
        ", ".join(sorted(row.grant.scopes)),
        ", ".join(row.grant.job_types) or EVERY,
        ", ".join(row.grant.queues) or EVERY,
        NONE if row.expires_at is None else local(row.expires_at),
        NONE if row.last_used_at is None else local(row.last_used_at),
    ]
