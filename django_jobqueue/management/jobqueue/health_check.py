"""The thresholds of ``jobqueue health`` and ``status --check``, and what they print."""

from __future__ import annotations

import argparse
import re
import sys
from datetime import timedelta
from typing import Any, Final, NamedTuple, NoReturn

from django.core.management.base import CommandError
from django.db import Error as DatabaseError

from django_jobqueue.conf import conf
from django_jobqueue.exceptions import JobQueueError
from django_jobqueue.logs import one_line
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.database import check, explained
from django_jobqueue.management.jobqueue.inputs import duration
from django_jobqueue.management.jobqueue.parsers import positive
from django_jobqueue.management.jobqueue.subcommand import FORMAT, Options, Subcommand
from django_jobqueue.stats import current_state, health
from django_jobqueue.stats.conditions import MANY_CRASHES
from django_jobqueue.stats.current_state import Present
from django_jobqueue.stats.health import Figure, Health, Thresholds
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import failure_stats, stats
from django_jobqueue.store.reading.stats import CAP
from django_jobqueue.verbs.columns import Column, Listing, only_json
from django_jobqueue.verbs.declarations import Argument, Takes, group

HEALTHY: Final = 0  # exit codes, as Nagios reads them
NOT_HEALTHY: Final = 2
CANNOT_TELL: Final = 3
MOST: Final = 3  # problems in the first line

PROBLEMS: Final = Listing(
    (
        Column(
            "code", note="few_workers, old_job, many_ready, many_failed, many_crashes"
        ),
        *only_json("message queue job_type"),
    )
)
FIGURES: Final = Listing(
    (
        Column("name", note="workers, oldest, ready, failed, crashes"),
        Column(
            "of", note="a queue or, of failed and crashes, a job type; null: of all"
        ),
        *only_json("value unit"),
        Column("limit", note="of workers a lower one"),
    )
)
_PLAIN_LABEL: Final = re.compile(r"[\w.:-]+")


def _ready(text: str) -> int:
    number = 0 if text == "0" else positive(text)
    if number > CAP:
        raise argparse.ArgumentTypeError(
            f"must be at most {CAP:,}: ready jobs are not counted further"
        )
    return number


THRESHOLDS: Final = (
    Argument(
        "max_age",
        "Longest wait of a queue's oldest ready job (default: ALERT_WAIT, 5 minutes).",
        Takes.DURATION,
    ),
    Argument(
        "max_ready",
        f"Most ready jobs of a queue, up to {CAP:,} (default: any number).",
        "N",
        parse=_ready,
    ),
    Argument(
        "max_failed",
        "Largest share of failed jobs among those of a job type that finished, such as "
        "5%% (default: ALERT_FAILED). Types with fewer than 20 finished jobs are left "
        "out.",
        "PERCENT",
    ),
    Argument(
        "max_crashes",
        "Most deaths of workers that ran jobs of a type, unless another job is known "
        "to have caused them, in this hour and the last one (default: "
        f"{MANY_CRASHES - 1}). A job that crashed alone is a problem of its type.",
        "N",
        parse=int,
    ),
    Argument(
        "min_workers",
        "Fewest workers that claim jobs; with --queues, of each of these queues "
        "(default: 1).",
        "N",
        parse=int,
    ),
    Argument("queues", "Judge only these queues (default: all).", "A,B"),
    Argument(
        "window", "How far back failed jobs are counted (default: 15m).", Takes.DURATION
    ),
)


class Wanted(NamedTuple):
    """The thresholds of the options."""

    thresholds: Thresholds
    window: float  # seconds for which failed jobs are counted


def wanted(options: Options) -> Wanted:
    """Raises CommandError for wrong values."""
    age, workers = options["max_age"], options["min_workers"]
    crashes = options["max_crashes"]
    for flag, number in (("--min-workers", workers), ("--max-crashes", crashes)):
        if number is not None and number < 0:
            raise _wrong_use(f"{flag}: must be at least 0, not {number}.")
    queues = [name.strip() for name in (options["queues"] or "").split(",")]
    thresholds = Thresholds(
        max_age=conf.alert_wait if age is None else _seconds("--max-age", age),
        max_ready=options["max_ready"],
        max_failed=_percent(options["max_failed"]),
        max_crashes=MANY_CRASHES - 1 if crashes is None else crashes,
        min_workers=1 if workers is None else workers,
        queues=frozenset(filter(None, queues)) or None,
    )
    window = _seconds("--window", options["window"] or timedelta(minutes=15))
    return Wanted(thresholds, window)


def read(wanted: Wanted, present: Present | None = None) -> Health:
    """Read what is not there yet, and judge it."""
    db = DjangoDatabase()
    recent = stats.recent(db, wanted.window)
    crashes = failure_stats.crashes(db)
    present = present or current_state.read()
    return health.judge(present, recent, crashes, wanted.thresholds)


def exit_code(health: Health) -> int:
    """The answer for a program that reads nothing."""
    return HEALTHY if health.is_healthy else NOT_HEALTHY


def first_line(health: Health) -> str:
    """The line for Nagios and similar systems: the state, a text, and figures."""
    word = "OK" if health.is_healthy else "CRITICAL"
    shown = [problem.message for problem in health.problems[:MOST]]
    if (left := len(health.problems) - MOST) > 0:
        shown.append(f"and {left} more")
    text = _text("; ".join(shown) or health.summary)
    return f"JOBQUEUE {word} - {text} | {' '.join(map(_measured, health.figures))}"


def as_object(health: Health) -> dict[str, Any]:
    """The judgement as JSON has it; the keys are stable."""
    return {
        "status": "ok" if health.is_healthy else "critical",
        "problems": list(map(PROBLEMS.as_object, health.problems)),
        "figures": list(map(FIGURES.as_object, health.figures)),
    }


def cannot_tell(console: Console, error: Exception) -> NoReturn:
    """Say why, and exit."""
    why = str(error)
    if isinstance(error, DatabaseError):
        why = explained(error) or why
    if console.is_json:
        unknown = {"status": "unknown", "error": why, "problems": [], "figures": []}
        console.json(unknown, ascii=True)
    else:
        console.print(f"JOBQUEUE UNKNOWN - {_text(why)}")
    console.stdout.flush()
    sys.exit(CANNOT_TELL)


def _text(text: str) -> str:
    """Without the sign that the figures begin with."""
    return one_line(text).replace("|", "/")


def _measured(figure: Figure) -> str:
    """``label=value unit;warning;critical``. A limit with a colon is a lower one."""
    label = figure.name if figure.of is None else f"{figure.name}_{figure.of}"
    if not _PLAIN_LABEL.fullmatch(label):
        label = "'" + re.sub(r"['=|]", "_", one_line(label)) + "'"
    limit = "" if figure.limit is None else f"{figure.limit:g}"
    if figure.name == "workers":
        limit += ":"
    return f"{label}={figure.value:.10g}{figure.unit};;{limit}".rstrip(";")


def _seconds(flag: str, text: str | timedelta) -> float:
    try:
        return duration(flag, text).total_seconds()
    except CommandError as error:
        raise _wrong_use(str(error)) from None


def _percent(text: str | None) -> float:
    if text is None:
        return float(conf.alert_failed)
    try:
        percent = float(text.strip().removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise _wrong_use(
            f"--max-failed: write a share from 0% to 100%, such as 5%, not {text!r}."
        )
    return percent


def _wrong_use(text: str) -> CommandError:
    return CommandError(text, returncode=CANNOT_TELL)


class HealthCheck(Subcommand):
    name = "health"
    summary = "Check the queue against thresholds, for monitoring."
    description = """\
Say whether the job queue is healthy: enough workers, no job that has waited for
too long, few failures and crashes. Nagios, Icinga, Zabbix, cron and others
understand the exit code; the first line has a text and the figures.

  0  healthy
  2  not healthy: the line says what is wrong
  3  unknown: the database does not answer, a migration is missing, or the
     command line is wrong

Jobs of paused queues and job types are left out. It loads your whole project,
which takes a moment: for a probe every few seconds, use /readyz and /healthz of
runworkers --metrics-port, or HEARTBEAT_FILE."""
    json = f"""one object: status (ok, critical or unknown), problems, a list of
    {PROBLEMS.keys}, figures, a list of {FIGURES.keys}, and error (why it is
    unknown)."""
    reads_jobs = False  # it is said here if they cannot be read
    wrong_use = CANNOT_TELL

    arguments = (
        FORMAT._replace(
            help="text is for people and Nagios, json for programs (default: text)."
        ),
        *group("thresholds", THRESHOLDS),
    )

    def run(self, console: Console, options: Options) -> None:
        asked = wanted(options)
        try:
            check(conf.database)
            judged = read(asked)
        except (CommandError, DatabaseError, JobQueueError) as error:
            cannot_tell(console, error)
        if console.is_json:
            console.json(as_object(judged), ascii=True)
        else:
            console.print(first_line(judged))
            for problem in judged.problems[MOST:]:
                console.print(problem.message)
        console.stdout.flush()
        sys.exit(exit_code(judged))
