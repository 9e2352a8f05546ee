"""``jobqueue run``: the handler of a job, here and in the foreground."""

from __future__ import annotations

import pdb
import sys
from contextlib import nullcontext, redirect_stdout
from typing import Any, Final

from django.conf import settings
from django.core.management.base import CommandError

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.domain.arguments import from_json
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.logs import one_line
from django_jobqueue.management.jobqueue.batches import INTERRUPTED
from django_jobqueue.management.jobqueue.console import Console, as_json
from django_jobqueue.management.jobqueue.inputs import object_of
from django_jobqueue.management.jobqueue.shown_job import masking_of
from django_jobqueue.management.jobqueue.subcommand import YES, Options, Subcommand, by
from django_jobqueue.management.jobqueue.where import JOB, job_id
from django_jobqueue.operations.foreground import (
    ForegroundRun,
    check_runnable,
    run_in_foreground,
)
from django_jobqueue.store.rows import Job
from django_jobqueue.text import numbers
from django_jobqueue.verbs.declarations import Argument, flag

WOULD: Final = {
    Verb.SUCCEED: "It succeeded",
    Verb.FAIL: "It failed: a worker would archive the job",
    Verb.RETRY: "A worker would try again after {wait}",
    Verb.SNOOZE: "A worker would snooze the job for {wait}",
    Verb.CANCEL: "A worker would archive the job as cancelled",
    Verb.RELEASE: "It was stopped",
    Verb.EXPIRE: "The job has expired",
    Verb.HAND_OVER: "The endpoint accepted it",
}


class Run(Subcommand):
    name = "run"
    summary = "Run a job's handler here, and roll back what it wrote."
    description = """\
Run a job's handler here, in the foreground, with the job's data, to see what it
does or where it fails. This is not an attempt: the job stays as it is, and a
worker that has it goes on.

All writes through Django, including enqueued jobs, are rolled back at the end,
in every database, and on_commit callbacks are not called. Mail, requests to
other services, and writes of its own threads are real.

  jobqueue run 019a9f5e-7c3b-7d4e-8a51-0c6f2f7f6a11
  jobqueue run 019a9f5e7c3b --pdb
  jobqueue run 019a9f5e7c3b --data '{"order_id": 8}' --commit

It asks first; where DEBUG is off, twice. The exit code is 1 unless the handler
succeeds."""
    json = """one object: id, job_type, committed, outcome (succeed, fail, retry,
    snooze, cancel), wait (seconds until a worker would go on), reason, seconds (that
    it took), result, error_class, error_message, traceback, and lines, a list of
    {level, text}. What the handler prints goes to standard error. Secrets are
    masked."""
    arguments = (
        JOB,
        flag(
            "rollback",
            "Roll back its writes, whether it fails or not (the default).",
            either="end",
        ),
        flag("commit", "Commit its writes.", either="end"),
        Argument("data", "Data to use instead of the job's: a JSON object.", "JSON"),
        flag("pdb", "Stop in the debugger where it raised an exception."),
        flag("at_most_once", "Also a job of an at-most-once type, which may have run."),
        YES._replace(help="Do not ask."),
    )

    def run(self, console: Console, options: Options) -> None:
        job = operations.get_job(job_id(options["id"]))
        _check(job, options)
        _make_sure(console, options, job)
        data = None if options["data"] is None else object_of(options["data"])
        try:
            with redirect_stdout(sys.stderr) if console.is_json else nullcontext():
                done = run_in_foreground(
                    job,
                    data=data,
                    commit=options["commit"],
                    at_most_once=options["at_most_once"],
                    by=by(),
                )
        except KeyboardInterrupt:
            ended = "It was interrupted."
            raise CommandError(ended, returncode=INTERRUPTED) from None
        facts = _as_object(job, done, committed=options["commit"], data=data)
        if console.is_json:
            console.json(facts)
        else:
            _print(console, facts, _sentence(done.outcome))
        if done.error is not None and options["pdb"]:
            pdb.post_mortem(done.error.__traceback__)
        if done.outcome.verb is not Verb.SUCCEED:
            raise CommandError(f"{_sentence(done.outcome)}.")


def _check(job: Job, options: Options) -> None:
    """Raises CommandError, UnknownJobType, InvalidArguments before anybody is asked."""
    if options["pdb"] and not sys.stdin.isatty():
        raise CommandError("--pdb needs a terminal.")
    if registry.get(job.job_type) is None:
        raise CommandError(f"No handler of {job.job_type!r} is in the code here.")
    if not options["at_most_once"]:
        check_runnable(job)


def _make_sure(console: Console, options: Options, job: Job) -> None:
    if options["yes"]:
        return
    what = "committed" if options["commit"] else "rolled back"
    questions = [
        f"The handler of {job.job_type} will run here, with the data of job {job.id}. "
        f"What it writes is {what}; mail and requests are really sent. Go on?"
    ]
    if not settings.DEBUG:
        alias = conf.database
        name = settings.DATABASES[alias]["NAME"]
        questions.append(f"DEBUG is off, and the database is {name}. Are you sure?")
    for question in questions:
        console.make_sure(question, "Nothing was run.")


def _sentence(outcome: Outcome) -> str:
    wait = numbers.span(outcome.wait.total_seconds())
    return WOULD[outcome.verb].format(wait=wait)


def _as_object(
    job: Job, done: ForegroundRun, *, committed: bool, data: dict[str, Any] | None
) -> dict[str, Any]:
    outcome, failure = done.outcome, done.outcome.failure
    masking = masking_of(job, data)
    result = None if outcome.result is None else from_json(outcome.result)
    return {
        "id": job.id,
        "job_type": job.job_type,
        "committed": committed,
        "outcome": outcome.verb.value,
        "wait": outcome.wait.total_seconds(),
        "reason": masking.text(outcome.reason),
        "seconds": round(done.seconds, 3),
        "result": masking.value(result),
        "error_class": failure.error_class if failure else "",
        "error_message": masking.text(failure.message) if failure else "",
        "traceback": masking.text(failure.traceback) if failure else "",
        "lines": [
            {"level": level, "text": masking.text(text)}
            for _, level, text in done.context.report.take().lines
        ],
    }


def _print(console: Console, facts: dict[str, Any], sentence: str) -> None:
    for line in facts["lines"]:
        console.print(one_line(f"{line['level']}: {line['text']}"))
    if facts["result"] is not None:
        console.section("Result", as_json(facts["result"]))
    console.section("Traceback", facts["traceback"])
    took = numbers.run_time(facts["seconds"])
    end = "was committed" if facts["committed"] else "was rolled back"
    reason = f" {facts['reason']}." if facts["reason"] else ""
    console.info(one_line(f"{sentence}.{reason} It took {took}, and {end}."))
