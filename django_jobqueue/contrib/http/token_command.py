"""``jobqueue token``: which programs may use the HTTP API."""

from __future__ import annotations

from typing import Final

from django.core.management.base import CommandError

from django_jobqueue.contrib.http.token_operations import create_token, revoke_tokens
from django_jobqueue.contrib.http.token_rows import tokens
from django_jobqueue.contrib.http.token_scopes import Scope, patterns_of
from django_jobqueue.management.jobqueue.console import Console, were
from django_jobqueue.management.jobqueue.inputs import known_names, moment
from django_jobqueue.management.jobqueue.subcommand import (
    Options,
    SubcommandWithVerbs,
    Words,
    by,
    no_words,
)
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.verbs.columns import EVERY, MOMENT, NAMES, Column, Listing
from django_jobqueue.verbs.declarations import Argument, Takes, flag, only

TOKENS: Final = Listing(
    (
        Column("name", "Token", breaks=True),
        Column("state", "State", note="valid, expired or revoked"),
        Column("scopes", "May", NAMES, lambda r: sorted(r.grant.scopes), breaks=True),
        Column("job_types", "Job types", EVERY, "grant.job_types", breaks=True),
        Column(
            "queues",
            "Queues",
            EVERY,
            "grant.queues",
            "patterns; empty is every one",
            breaks=True,
        ),
        Column("created_at"),
        Column("created_by"),
        Column("expires_at", "Expires", MOMENT),
        Column("last_used_at", "Last used", MOMENT, note="to the hour"),
        Column("revoked_at"),
    ),
    "There is no token.",
    color=lambda row: "yellow" if row.state in ("expired", "revoked") else "",
)


class Tokens(SubcommandWithVerbs):
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
    json = f"""a list of {TOKENS.keys}. Of create, such an object with the token. Of
    revoke, the list of the names that were revoked."""
    arguments = (
        *only(
            "create",
            Argument("may", f"What it allows: {', '.join(Scope)}.", "SCOPES"),
            Argument("types", "Only these job types: 'shop.*,mail'.", "PATTERNS"),
            Argument("queues", "Only jobs of these queues.", "PATTERNS"),
            Argument("expires", "A moment, or a time from now: 90d.", Takes.MOMENT),
        ),
        flag("all", "List revoked ones, too.", only="list"),
    )

    def do(self, verb: str, words: Words, console: Console, options: Options) -> None:
        if verb == "create":
            _create(console, words, options)
            return
        rows = tokens(DjangoDatabase())
        if verb == "list":
            no_words(words)
            is_all = options["all"]
            console.rows(TOKENS, [r for r in rows if is_all or r.revoked_at is None])
            return
        known_names("token", words, [row.name for row in rows], "revoke")
        revoked = revoke_tokens(words, by=by())
        if console.is_json:
            console.json(revoked)
        else:
            console.info(f"{were(len(revoked), 'token', 'revoked')}.")


def _create(console: Console, words: list[str], options: Options) -> None:
    if len(words) != 1:
        raise CommandError("Name the token to create, by the program that gets it.")
    if not options["may"]:
        raise CommandError(f"Say what it allows: --may {','.join(Scope)}.")
    text = options["expires"]
    expires = None if text is None else moment("--expires", text, now=database_now())
    made = create_token(
        words[0],
        patterns_of(options["may"]),
        job_types=patterns_of(options["types"] or ""),
        queues=patterns_of(options["queues"] or ""),
        expires_at=expires,
        by=by(),
    )
    if console.is_json:
        console.json({**TOKENS.as_object(made.row), "token": made.text})
        return
    console.print(made.text)
    console.warn("Keep it: it cannot be shown again.")
