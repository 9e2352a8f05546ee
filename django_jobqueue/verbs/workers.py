"""The verbs of workers and hosts: what they are asked to do."""

from __future__ import annotations

from functools import partial
from typing import Final

from django_jobqueue import operations
from django_jobqueue.verbs.declarations import Argument, On, Verb


def _ask(name: str, summary: str) -> Verb:
    return Verb(
        name,
        partial(operations.ask_workers, what=name),
        on=On.WORKER,
        right="control_worker",
        summary=summary,
        done=f"asked to {name}",
        audit="{name} workers",
    )


DRAIN: Final = _ask("drain", "Finish running jobs, claim no more, and stay.")
RESUME: Final = _ask("resume", "Claim again.")
STOP: Final = _ask(
    "stop", "Finish running jobs, and end; runworkers goes on with one process fewer."
)
RESTART: Final = _ask(
    "restart", "Finish running jobs, and end; a successor starts at once."
)
OF_WORKERS: Final = {one.name: one for one in (DRAIN, RESUME, STOP, RESTART)}


def _ask_host(verb: Verb, summary: str = "") -> Verb:
    return verb._replace(
        function=partial(operations.ask_hosts, what=verb.name),
        on=On.HOST,
        summary=summary or verb.summary,
        audit="{name} hosts",
    )


SCALE: Final = _ask_host(DRAIN)._replace(
    name="scale",
    function=operations.scale_hosts,
    summary="Have other processes, threads, async slots or queues; workers are "
    "replaced one by one, each when its successor works.",
    done="asked to scale",
    arguments=(
        Argument("processes", "Worker processes; 0 parks a host.", "NUMBER"),
        Argument("threads", "Threads for sync handlers in each.", "NUMBER"),
        Argument("async_slots", "Async slots of each.", "NUMBER"),
        Argument("queues", "Queues to claim from; none is every queue.", "NAME,..."),
    ),
    needs="Give --processes, --threads, --async-slots or --queues.",
)
OF_HOSTS: Final = {
    one.name: one
    for one in (
        SCALE,
        _ask_host(
            RESTART,
            "Load new code: another process tries it first, so that code that does not "
            "start leaves the host at work.",
        ),
        _ask_host(STOP, "Finish running jobs within GRACE, and end with exit code 0."),
        _ask_host(DRAIN),
        _ask_host(RESUME),
    )
}
