"""``jobqueue show``: all there is to know of one job."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django_jobqueue import operations
from django_jobqueue.domain.states import ArchivedStatus, QueuedStatus
from django_jobqueue.logs import one_line
from django_jobqueue.management.jobqueue.console import (
    Console,
    as_json,
    followers_text,
    lines_of,
    listed,
    moment_text,
)
from django_jobqueue.management.jobqueue.shown_job import SHOWN, Shown, why_not_running
from django_jobqueue.management.jobqueue.subcommand import Options, Subcommand
from django_jobqueue.management.jobqueue.where import JOB, job_id
from django_jobqueue.stats.why_not_running import Reason
from django_jobqueue.store.rows import Job
from django_jobqueue.text import numbers


class Why(Subcommand):
    name = "why"
    summary = "Say why a job is not running, with advice."
    description = """\
Say why a job is not running, as the admin does: each reason with the command
that helps, if there is one. If the job runs or has finished, it says so.

  jobqueue why 019a9f5e-7c3b-7d4e-8a51-0c6f2f7f6a11"""
    json = """one object: id, job_type, queue, status, runs, over, and reasons, a list
    of {text, about (limit, key, job type, queue, or empty), remedy (a command, without
    manage.py; empty if there is nothing to do)}."""
    arguments = (JOB,)

    def run(self, console: Console, options: Options) -> None:
        job = operations.get_job(job_id(options["id"]))
        reasons = list(_reasons(job))
        if console.is_json:
            console.json(_as_object(job, reasons))
            return
        console.print(one_line(_state(job)))
        for reason in reasons:
            console.print(one_line(f"- {reason}"))
            if reason.remedy:
                console.print(one_line(f"  manage.py {reason.remedy}"))


def _reasons(job: Job) -> Iterator[Reason]:
    yield from why_not_running(job)
    if job.is_over and job.status != ArchivedStatus.SUCCEEDED:
        error = f"{job.error_class}: {job.error_message}".strip(": ")
        text = error or f"it was archived as {job.status}"
        yield Reason(text, "", "jobqueue", "replay", job.id)


def _state(job: Job) -> str:
    name = f"Job {job.id} of type {job.job_type}"
    if job.is_over:
        return f"{name} has finished: {job.status} at {moment_text(job.finished_at)}."
    if job.status == QueuedStatus.RUNNING:
        on = f" on {job.worker}" if job.worker else ""
        return f"{name} runs{on} since {moment_text(job.started_at)}."
    return f"{name} waits in queue {job.queue}."


def _as_object(job: Job, reasons: list[Reason]) -> dict[str, Any]:
    return {
        "id": job.id,
        "job_type": job.job_type,
        "queue": job.queue,
        "status": job.status,
        "runs": job.status == QueuedStatus.RUNNING,
        "over": job.is_over,
        "reasons": [
            {"text": one, "about": one.about, "remedy": one.remedy} for one in reasons
        ],
    }


class Show(Subcommand):
    name = "show"
    summary = "Show one job: its state, data, attempts and lines."
    description = """\
Show one job, queued or archived: why it waits, or when, where and how it ran;
its data, metadata, result and progress; every unsuccessful attempt with its
error; the last traceback; and its log lines. Secrets are masked.

  jobqueue show 019a9f5e-7c3b-7d4e-8a51-0c6f2f7f6a11
  jobqueue show 019a9f5e7c3b --format json"""
    json = f"""one object, {SHOWN.keys}. Durations are in seconds, times in ISO 8601,
    and unknown values are null."""
    arguments = (JOB,)

    def run(self, console: Console, options: Options) -> None:
        job = SHOWN.as_object(Shown(job_id(options["id"])))
        if console.is_json:
            console.json(job)
            return
        console.facts(_facts(job))
        for name in ("data", "metadata", "result"):
            if job[name] is not None:
                console.section(name.capitalize(), as_json(job[name]))
        console.section("Unsuccessful attempts", _failures(job))
        with_traceback = [one for one in job["failures"] if one["traceback"]]
        for last in with_traceback[-1:]:
            title = f"Traceback of attempt {last['attempt']}"
            console.section(title, last["traceback"])
        console.section("Lines", _lines(job))


def _facts(job: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "Job", str(job["id"])
    yield "Job type", job["job_type"]
    yield "Handler", job["handler"]
    yield "Status", _status(job)
    yield "Why not running", "; ".join(job["why_not_running"])
    yield "Attempts", _attempts(job)
    yield "Crashes", str(job["crashes"] or "")
    yield "Error", _error(job)
    yield "Progress", _progress(job["progress"])
    if job["timeout"] is not None:
        yield "Timeout", numbers.length(timedelta(seconds=job["timeout"]))
    yield "Backoff", "" if job["backoff"] is None else as_json(job["backoff"])
    yield "Queue", job["queue"]
    yield "Priority", str(job["priority"])
    yield "Tags", listed(job["tags"])
    yield "Enqueued", moment_text(job["created_at"])
    yield "Enqueued by", job["enqueued_by"] or ""
    yield "Run after", moment_text(job["run_after"])
    yield "Expires", moment_text(job["expires_at"])
    yield "Started", moment_text(job["started_at"])
    yield "Finished", moment_text(job["finished_at"])
    yield "Ran", _milliseconds(job["run_ms"])
    yield "Waited", _milliseconds(job["wait_ms"])
    yield "Worker", job["worker"]
    yield "Release", job["release"] or ""
    yield "Follows", str(job["follows"] or "")
    yield from followers_text(job["followers"])
    yield "Followed by", listed(job["followed_by"])
    yield "Replay of", str(job["replay_of"] or "")
    yield "Replayed as", listed(job["replays"])
    yield "Bulk operation", str(job["bulk_operation_id"] or "")
    yield "Failure group", str(job["fingerprint"] or "")


def _attempts(job: dict[str, Any]) -> str:
    limit = job["max_attempts"]
    if limit is None and job["status"] not in QueuedStatus.values:
        return str(job["attempts"])  # the limit is not known
    return f"{job['attempts']} of {limit or 'unlimited'}"


def _status(job: dict[str, Any]) -> str:
    parts = [job["status"]]
    if job["cancel_requested_at"]:
        parts.append("it was asked to stop")
    if job["quarantined"]:
        parts.append("it runs in a process of its own, because its workers died")
    return "; ".join(parts)


def _error(job: dict[str, Any]) -> str:
    return ": ".join(filter(None, (job["error_class"], job["error_message"])))


def _progress(progress: dict[str, Any] | None) -> str:
    if progress is None:
        return ""
    done = numbers.done_text(progress["done"], progress["total"])
    return ", ".join(filter(None, (done, progress["note"])))


def _milliseconds(value: int | None) -> str:
    return "" if value is None else numbers.duration(value)


def _failures(job: dict[str, Any]) -> str:
    return lines_of(
        (
            f"{one['attempt']:>3}",
            moment_text(one["finished_at"]),
            one["end"].replace("_", " "),
            one["worker"],
            one["release"],
            " ".join(_error(one).split()) or one["reason"],
        )
        for one in job["failures"]
    )


def _lines(job: dict[str, Any]) -> str:
    return lines_of(
        (f"{one['attempt']:>3}", moment_text(one["at"]), one["level"], one["text"])
        for one in job["lines"]
    )
