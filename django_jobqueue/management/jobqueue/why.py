"""``jobqueue why``: why a job is not running, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django_jobqueue import operations
from django_jobqueue.domain.states import ArchivedStatus, QueuedStatus
from django_jobqueue.logs import one_line
from django_jobqueue.management.jobqueue.console import Console, moment_text
from django_jobqueue.management.jobqueue.inputs import JOB, job_id
from django_jobqueue.management.jobqueue.shown_job import why_not_running
from django_jobqueue.management.jobqueue.subcommand import Subcommand
from django_jobqueue.stats.why_not_running import Reason
from django_jobqueue.store.rows import Job


class Why(Subcommand):
    """Says why a job is not running."""

    name = "why"
    summary = "Say why a job is not running, and what to do."
    description = """\
Say why a job is not running: what it waits for, as the admin says it, each with
the command that helps, if there is one. Of a job that runs or has finished, it
says that.

  jobqueue why 019a9f5e-7c3b-7d4e-8a51-0c6f2f7f6a11"""
    json = """one object: id, job_type, queue, status, runs, over, and reasons, a list
    of {text, about (limit, key, job type, queue, or empty), remedy (a command, without
    manage.py; empty if there is nothing to do)}."""
    arguments = (JOB,)

    def run(self, console: Console, options: dict[str, Any]) -> None:
        """Say it. Raises CommandError, JobNotFound."""
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
