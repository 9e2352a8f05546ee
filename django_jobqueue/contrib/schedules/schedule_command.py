"""``jobqueue schedule``: show one schedule, run it, pause it, override it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from django.core.management.base import CommandError

from django_jobqueue.conf import conf
from django_jobqueue.contrib.schedules import operations
from django_jobqueue.contrib.schedules.due_firings import Origin
from django_jobqueue.contrib.schedules.models import Firing, Schedule
from django_jobqueue.contrib.schedules.schedule_states import ScheduleNow
from django_jobqueue.contrib.schedules.schedules_command import (
    SCHEDULES,
    from_now,
    in_zone,
    last_text,
    next_firings,
    notes,
    read,
)
from django_jobqueue.contrib.schedules.verbs import DELETE, PAUSE, RESUME, RUN, VERBS
from django_jobqueue.domain.registry import registry
from django_jobqueue.exceptions import UnknownSchedule
from django_jobqueue.management.jobqueue.console import (
    Console,
    lines_of,
    listed,
    moment_text,
)
from django_jobqueue.management.jobqueue.inputs import data_of, values_of
from django_jobqueue.management.jobqueue.subcommand import YES, Options, Subcommand, by
from django_jobqueue.text import timezones
from django_jobqueue.text.suggestions import near_names
from django_jobqueue.verbs.declarations import Argument, Takes, flag

MOMENTS: Final = 5
FIRINGS: Final = 10
FLAGS: Final = {"rule": "rule", "time_zone": "tz", "data": "data"}
CODE: Final = "code"  # the value that lets the code decide again


class ShowSchedule(Subcommand):
    name = "schedule"
    summary = "Show a schedule; run, pause, resume or override it."
    description = """\
Show or operate a schedule. --rule, --tz and --data edit a schedule that an
operator made, and override one that the code declares.

  jobqueue schedule nightly-report
  jobqueue schedule nightly-report --run
  jobqueue schedule nightly-report --pause --reason "the disk is full"
  jobqueue schedule nightly-report --rule "30 4 * * *" --tz Europe/Berlin
  jobqueue schedule prices --rule "every 10 minutes"
  jobqueue schedule nightly-report --tz code"""
    json = """one object as jobqueue schedules does, with next (moments) and firings
    (the newest, {fires_at, outcome, number, by, job_id}); of --run {schedule, job_id};
    of --delete {deleted}."""
    arguments = (
        Argument("name", "The schedule.", "NAME", words="1"),
        *(flag(name, one.summary, either="verb") for name, one in VERBS.items()),
        flag("reset", "Clear all overrides.", either="verb"),
        Argument("reason", "Shown with the pause."),
        Argument(
            "rule",
            'Such as "every 5 minutes", "30 2 * * *" or "@daily"; "code" clears an '
            "override.",
        ),
        Argument(
            "tz",
            'A time zone such as Europe/Berlin; "code" clears an override.',
            "ZONE",
        ),
        Argument(
            "data",
            'The arguments of its jobs, an object; "code" clears an override.',
            "JSON",
        ),
        Argument(
            "next",
            f"How many of the next moments to show (default: {MOMENTS}).",
            Takes.POSITIVE,
            default=MOMENTS,
        ),
        YES,
    )

    def run(self, console: Console, options: Options) -> None:
        name = options["name"]
        _check(options)
        _must_exist(name)
        if options["run"]:
            _run(console, name)
        elif options["delete"]:
            _delete(console, options, name)
        else:
            text = _change(options, name)
            if text and not console.is_json:
                console.info(f"{text}{_gone(name)}")
            else:
                _show(console, options["next"], name)


def _check(options: Options) -> None:
    """Raises CommandError for what does not go together."""
    if options["reason"] is not None and not options["pause"]:
        raise CommandError("--reason works only with --pause.")
    if options["yes"] and not options["delete"]:
        raise CommandError("--yes works only with --delete.")
    given = [f"--{name}" for name in (*VERBS, "reset") if options[name]]
    values = [
        f"--{name}" for name in ("rule", "tz", "data") if options[name] is not None
    ]
    if given and values:
        raise CommandError(f"{values[0]} does not go with {given[0]}.")


def _must_exist(name: str) -> None:
    names = list(Schedule.objects.using(conf.database).values_list("name", flat=True))
    if name not in names:
        raise UnknownSchedule(name, near_names(name, names))


def _run(console: Console, name: str) -> None:
    job = RUN.function(name, by=by())
    if console.is_json:
        console.json({"schedule": name, "job_id": job.id})
    else:
        console.info(f"{RUN.done.format(job=job)}{_gone(name)}")


def _gone(name: str) -> str:
    """That it does not fire, whatever is done to it; as a sentence that follows."""
    row = Schedule.objects.using(conf.database).get(name=name)
    if row.gone_at is None:
        return ""
    return " No code declares it, so it does not fire; --delete deletes it."


def _delete(console: Console, options: Options, name: str) -> None:
    row = Schedule.objects.using(conf.database).get(name=name)
    is_of_code = row.origin == Origin.CODE and row.gone_at is None
    if not (options["yes"] or (is_of_code and registry.get(row.job_type_id))):
        console.make_sure(DELETE.ask.format(name=name), "Nothing was deleted.")
    DELETE.function(name, by=by())
    if console.is_json:
        console.json({"deleted": name})
    else:
        console.info(DELETE.done.format(name=name))


def _change(options: Options, name: str) -> str:
    """Change it as the flags say; a sentence about it, empty for nothing."""
    if options["pause"] or options["resume"]:
        verb = PAUSE if options["pause"] else RESUME
        how = values_of(verb.arguments, options, timezones.now())
        done = verb.function(name, by=by(), **how)
        return (verb.done if done else verb.not_done).format(name=name)
    flags = {option: options[flag] for option, flag in FLAGS.items()}
    given = {option: text for option, text in flags.items() if text is not None}
    if options["reset"]:
        given = dict.fromkeys(flags, CODE)
    if not given:
        return ""
    row = Schedule.objects.using(conf.database).get(name=name)
    values: dict[str, Any] = {
        option: None if text == CODE else text for option, text in given.items()
    }
    if values.get("data") is not None:
        values["data"] = data_of([values["data"]])
    if row.origin == Origin.CODE:
        operations.override(name, by=by(), **values)
    elif None in values.values():
        raise CommandError(f"No code declares {name}: it has no overrides to clear.")
    else:
        operations.edit(name, by=by(), **values)
    return f"{name}: {_rules(name)}."


def _rules(name: str) -> str:
    (one,) = (one for one in read() if one.row.name == name)
    values = SCHEDULES.as_object(one)
    at = "" if one.next_at is None else f", next at {in_zone(one, one.next_at)}"
    return f"{values['rule']} ({values['time_zone']}){at}"


def _show(console: Console, number: int, name: str) -> None:
    (one,) = (one for one in read() if one.row.name == name)
    moments = list(islice(next_firings(one, timezones.now()), number))
    firings = Firing.objects.using(conf.database).filter(schedule=name)
    newest = list(firings.order_by("-fires_at")[:FIRINGS])
    if console.is_json:
        keys = ("fires_at", "outcome", "number", "by", "job_id")
        last = [{key: getattr(firing, key) for key in keys} for firing in newest]
        shown = SCHEDULES.as_object(one)
        console.json({**shown, "next": moments, "firings": last})
        return
    console.facts(_facts(one))
    next_rows = ((in_zone(one, at), from_now(at)) for at in moments)
    console.section("Next", lines_of(next_rows))
    rows = (
        (
            in_zone(one, firing.fires_at),
            firing.outcome,
            f"{firing.number} of them" if firing.number > 1 else "",
            firing.job_id or "",
            firing.by,
        )
        for firing in newest
    )
    console.section("Firings", lines_of(rows))


def _facts(one: ScheduleNow) -> Iterator[tuple[str, str]]:
    row, values = one.row, SCHEDULES.as_object(one)
    yield "Schedule", row.name
    yield "Job type", row.job_type_id
    yield "State", "; ".join(filter(None, (one.state.value, *notes(one))))
    yield "Rule", values["rule"]
    yield "Time zone", values["time_zone"]
    yield "Overridden", listed(values["overridden"])
    yield "Origin", row.origin
    yield "Data", json.dumps(values["data"], ensure_ascii=False)
    yield "Next firing", in_zone(one, one.next_at) if one.next_at else ""
    yield "Last firing", last_text(one)
    yield "Paused", moment_text(row.paused_at)
    yield "Gone since", moment_text(row.gone_at)
    yield "Missed", row.missed
    yield "Overlap", row.overlap
    yield "Starts", moment_text(row.starts_at)
    yield "Ends", moment_text(row.ends_at)
