"""``jobqueue types``: the job types, their policies and what operators say of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Final, NamedTuple

from django.core.management.base import CommandError

from django_jobqueue.conf import conf
from django_jobqueue.domain.job_options import OF_TYPE, OVERRIDES
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.states import Delivery
from django_jobqueue.exceptions import UnknownJobType
from django_jobqueue.management.jobqueue.console import (
    Console,
    followers_text,
    listed,
    moment_text,
)
from django_jobqueue.management.jobqueue.override import UNLIMITED, override_text
from django_jobqueue.management.jobqueue.subcommand import (
    Options,
    SubcommandWithVerbs,
    Words,
    no_words,
)
from django_jobqueue.models import JobType
from django_jobqueue.stats.pauses import is_paused
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import stats
from django_jobqueue.text import numbers
from django_jobqueue.verbs.columns import (
    NONE,
    NUMBER,
    RIGHT,
    Column,
    Listing,
    only_json,
)


def _length(seconds: float | None) -> str:
    return "" if seconds is None else numbers.length(timedelta(seconds=seconds))


def _seconds(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value


def _short(policy: dict[str, Any]) -> str:
    """The value in force, marked if it is an override."""
    value = NONE if policy["value"] is None else numbers.number(policy["value"])
    return value if policy["override"] is None else f"{value}*"


def _note(one: Known) -> str:
    unknown = "" if one.is_known else "no handler here"
    return ", ".join(filter(None, ("paused" * one.paused, unknown))) or NONE


def _if_paused(name: str, none: Any = "") -> Callable[[Known], Any]:
    return lambda one: getattr(one.row, name) if one.paused else none


class Known(NamedTuple):
    """A job type, and how many of its jobs wait and run."""

    row: JobType
    waiting: int
    running: int

    @property
    def paused(self) -> bool:
        """True if none of its jobs is claimed now."""
        return is_paused(self.row)

    @property
    def is_known(self) -> bool:
        """True if its handler is declared here."""
        return registry.get(self.row.name) is not None

    @property
    def policy(self) -> dict[str, Any]:
        """The values in force, by option."""
        return {option: _policy(self.row, option) for option in OVERRIDES}


def _limit(option: str) -> Callable[[Known], str]:
    return lambda one: _short(_policy(one.row, option))


TYPES: Final = Listing(
    (
        Column("name", "Job type", value="row.name", breaks=True),
        *only_json("handler description", "row"),
        Column("queue", "Queue", value="row.queue", breaks=True),
        *only_json("delivery atomic", "row"),
        Column("is_known", note="the handler is declared here"),
        *only_json("backoff retry max_crashes", "row"),
        Column("expires_in", value=lambda one: _seconds(one.row.expires_in)),
        *only_json("unique_by followers sensitive", "row"),
        Column("paused"),
        Column("paused_by", value=_if_paused("paused_by")),
        Column("paused_reason", value=_if_paused("paused_reason")),
        Column("resume_at", value=_if_paused("resume_at", None)),
        Column("policy"),
        Column("", "Attempts", RIGHT, _limit("max_attempts")),
        Column("", "Limit", RIGHT, _limit("concurrency")),
        Column("waiting", "Waiting", NUMBER),
        Column("running", "Running", NUMBER),
        *only_json("declared_at", "row"),
        Column("", "Note", value=_note, cut=True),
    ),
    "No job types: run manage.py migrate where handlers are.",
)


class Types(SubcommandWithVerbs):
    name = "types"
    summary = "List job types, or show one of them."
    verbs = ("list", "show")
    wanted = "TYPE"
    description = """\
List the job types in the database, or show one: the code's options, operators'
overrides, and how many jobs wait and run.

  jobqueue types
  jobqueue types show shop.send_receipt

Attempts and limit (of concurrent jobs) are those in force, with a * where an
operator overrides the code. See jobqueue override."""
    json = f"""a list, and for "show" one object, of {TYPES.keys}. Policy has {{code,
    override, value}} for each option that can be overridden: the declared value, the
    override (null if there is none), and the value in force. Durations are in seconds;
    null is unlimited, or for keep_... the value of the settings. No lane is counted
    above 10,000. The options of policy are: {", ".join(OVERRIDES)}"""

    def do(self, verb: str, words: Words, console: Console, options: Options) -> None:
        if verb == "list":
            no_words(words)
            console.rows(TYPES, read())
            return
        if len(words) != 1:
            raise CommandError("Say which job type to show.")
        by_name = {one.row.name: one for one in read()}
        if words[0] not in by_name:
            raise UnknownJobType(words[0], registry.near(words[0], list(by_name)))
        one = TYPES.as_object(by_name[words[0]])
        if console.is_json:
            console.json(one)
        else:
            console.facts(_facts(one))


def read() -> list[Known]:
    """All job types, by name."""
    counts: dict[str, list[int]] = {}
    for depth in stats.depths(DjangoDatabase()):
        sums = counts.setdefault(depth.job_type, [0, 0])
        sums[0] += depth.ready + depth.later
        sums[1] += depth.running
    rows = JobType.objects.using(conf.database).order_by("name")
    return [Known(row, *counts.get(row.name, (0, 0))) for row in rows]


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
