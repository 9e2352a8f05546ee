"""``jobqueue types``: the job types, their policies and what operators say of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from textwrap import fill
from typing import Any, Final

from django.core.management.base import CommandError

from django_jobqueue.conf import conf
from django_jobqueue.domain.job_options import OF_TYPE, OVERRIDES
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.states import Delivery
from django_jobqueue.exceptions import UnknownJobType
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.detail_page import (
    as_json,
    followers_text,
    listed,
    moment_text,
    print_facts,
)
from django_jobqueue.management.jobqueue.override import UNLIMITED, override_text
from django_jobqueue.management.jobqueue.subcommand_verbs import (
    SubcommandWithVerbs,
    no_words,
)
from django_jobqueue.management.jobqueue.text_tables import Column, Row
from django_jobqueue.models import JobType
from django_jobqueue.stats.pauses import is_paused
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import stats
from django_jobqueue.text import numbers

COLUMNS: Final = (
    Column("Job type", breaks=True),
    Column("Queue", breaks=True),
    *(Column(t, right=True) for t in ("Attempts", "Limit", "Waiting", "Running")),
    Column("Note", cut=True),
)


class Types(SubcommandWithVerbs):
    """Lists job types, and shows one."""

    name = "types"
    summary = "List job types, or show one of them."
    verbs = ("list", "show")
    wanted = "TYPE"
    description = """\
List the job types that the database knows, or show one: what the code
declares, what operators override, and how many jobs wait and run.

  jobqueue types
  jobqueue types show shop.send_receipt

Attempts and limit (of jobs that run at once) are those in force, with a *
where an operator overrides the code. Overrides are made by jobqueue override."""
    epilog = """\
--format json prints a list, and for "show" one object, of {name, handler,
description, is_known (the handler is declared here), queue, delivery, atomic,
backoff, retry, max_crashes, expires_in, unique_by, followers, sensitive,
paused, paused_by, paused_reason, resume_at, policy, waiting, running,
declared_at}.
Policy has {code, override, value} for each option that can be overridden: the
declared value, the override (null if there is none), and the value in force.
Durations are in seconds; null is unlimited, or for keep_... the value of the
settings. No lane is counted above 10,000. The options of policy are:
""" + fill(", ".join(OVERRIDES), 79)

    def do(
        self, verb: str, words: list[str], console: Console, options: dict[str, Any]
    ) -> None:
        """List them, or show one. Raises CommandError, UnknownJobType."""
        if verb == "list":
            no_words(words)
            _list(console, options)
            return
        if len(words) != 1:
            raise CommandError("Say which job type to show.")
        by_name = {one["name"]: one for one in as_objects()}
        if words[0] not in by_name:
            raise UnknownJobType(words[0], registry.near(words[0], list(by_name)))
        one = by_name[words[0]]
        if options["format"] == "json":
            console.print(as_json(one))
        else:
            print_facts(console, _facts(one))


def as_objects() -> list[dict[str, Any]]:
    """All job types, by name; the keys are stable."""
    counts: dict[str, list[int]] = {}
    for depth in stats.depths(DjangoDatabase()):
        sums = counts.setdefault(depth.job_type, [0, 0])
        sums[0] += depth.ready + depth.later
        sums[1] += depth.running
    rows = JobType.objects.using(conf.database).order_by("name")
    return [_as_object(row, *counts.get(row.name, (0, 0))) for row in rows]


def _as_object(row: JobType, waiting: int, running: int) -> dict[str, Any]:
    paused = is_paused(row)
    same = ("name", "handler", "description", "queue", "delivery", "atomic")
    return {
        **{name: getattr(row, name) for name in same},
        "is_known": registry.get(row.name) is not None,
        "backoff": row.backoff,
        "retry": row.retry,
        "max_crashes": row.max_crashes,
        "expires_in": _seconds(row.expires_in),
        "unique_by": row.unique_by,
        "followers": row.followers,
        "sensitive": row.sensitive,
        "paused": paused,
        "paused_by": row.paused_by if paused else "",
        "paused_reason": row.paused_reason if paused else "",
        "resume_at": row.resume_at if paused else None,
        "policy": {option: _policy(row, option) for option in OVERRIDES},
        "waiting": waiting,
        "running": running,
        "declared_at": row.declared_at,
    }


def _policy(row: JobType, option: str) -> dict[str, Any]:
    override = getattr(row, f"{option}_override")
    code = getattr(row, option, None)  # of the archive the settings say
    return {
        "code": _seconds(code),
        "override": _seconds(override),
        "value": _seconds(_in_force(row, option, code, override)),
    }


def _in_force(row: JobType, option: str, code: Any, override: Any) -> Any:
    if option == "max_attempts" and row.delivery == Delivery.AT_MOST_ONCE:
        return 1
    if override is None:
        return code
    return None if override == OVERRIDES[option].unlimited else override


def _list(console: Console, options: dict[str, Any]) -> None:
    objects = as_objects()
    if options["format"] == "json":
        console.print(as_json(objects))
        return
    if not objects:
        console.print("No job types: run manage.py migrate where handlers are.")
        return
    console.table(COLUMNS, [Row(_cells(one)) for one in objects])


def _cells(one: dict[str, Any]) -> list[str]:
    return [
        one["name"],
        one["queue"],
        _short(one["policy"]["max_attempts"]),
        _short(one["policy"]["concurrency"]),
        numbers.number(one["waiting"]),
        numbers.number(one["running"]),
        _note(one),
    ]


def _short(policy: dict[str, Any]) -> str:
    """What holds, marked if it is an override."""
    value = "-" if policy["value"] is None else numbers.number(policy["value"])
    return value if policy["override"] is None else f"{value}*"


def _note(one: dict[str, Any]) -> str:
    notes = []
    if one["paused"]:
        notes.append("paused")
    if not one["is_known"]:
        notes.append("no handler here")
    return ", ".join(notes) or "-"


def _facts(one: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "Job type", one["name"]
    yield "Handler", one["handler"] + ("" if one["is_known"] else " (not known here)")
    yield "Description", one["description"]
    yield "Queue", one["queue"]
    yield "Paused", _pause(one)
    for option, policy in one["policy"].items():
        yield option.replace("_", " ").capitalize(), _policy_text(option, policy)
    yield "Backoff", one["backoff"]
    yield "Retry rules", "; ".join(_rules(one["retry"]))
    yield "Delivery", one["delivery"].replace("_", " ")
    yield "Atomic", "yes" if one["atomic"] else ""
    yield "Max crashes", str(one["max_crashes"])
    yield "Expires in", _length(one["expires_in"])
    yield "Unique by", one["unique_by"]
    yield from followers_text(one["followers"])
    yield "Sensitive", listed(one["sensitive"])
    yield "Waiting", numbers.number(one["waiting"])
    yield "Running", numbers.number(one["running"])
    yield "Declared", moment_text(one["declared_at"])


def _rules(rules: Any) -> Iterator[str]:
    for rule in rules if isinstance(rules, list) else ():
        options = {name: rule[name] for name in ("max_attempts", "backoff")}
        parts = [f"{k} {v}" for k, v in options.items() if v is not None]
        text = ", ".join(parts) or "retried"
        yield f"{rule['exception']}: {text if rule['retry'] else 'not retried'}"


def _pause(one: dict[str, Any]) -> str:
    if not one["paused"]:
        return ""
    until = moment_text(one["resume_at"])
    parts = (f"until {until}" if until else "until it is resumed", one["paused_by"])
    return ", ".join(filter(None, (*parts, one["paused_reason"])))


def _policy_text(option: str, policy: dict[str, Any]) -> str:
    is_retention, is_span = option not in OF_TYPE, OVERRIDES[option].is_duration
    code = policy["code"]
    if option == "summary":
        text = code or "the first values of the data"
    elif OVERRIDES[option].is_text:
        text = code or UNLIMITED
    elif code is None:
        text = "as the settings say" if is_retention else UNLIMITED
    else:
        text = _length(code) if is_span else numbers.number(code)
    if policy["override"] is None:
        return text
    override = timedelta(seconds=policy["override"]) if is_span else policy["override"]
    return f"{override_text(option, override)} (overridden; otherwise {text})"


def _length(seconds: float | None) -> str:
    return "" if seconds is None else numbers.length(timedelta(seconds=seconds))


def _seconds(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value
