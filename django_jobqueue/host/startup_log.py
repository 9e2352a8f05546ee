"""The line that workers log when they start, and warnings about likely mistakes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

from psycopg.pq import Conninfo

from django_jobqueue import logs
from django_jobqueue.conf import conf
from django_jobqueue.domain import registry
from django_jobqueue.domain.log_events import Event
from django_jobqueue.domain.registry import handler_names, missing_modules
from django_jobqueue.processes import identity
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.session import connection_parameters
from django_jobqueue.text.suggestions import did_you_mean

logger = logging.getLogger("django_jobqueue.supervisor")

DEFAULT_PORT: Final = "5432"


def log_start(config: WorkerConfig, processes: int | None) -> None:
    """Log what is about to start; ``processes`` is None for an embedded worker. Warn of
    likely mistakes: no handlers, or modules of handlers that no app has. From here on,
    successes are logged if the level includes them, in forks too."""
    logs.connect_successes()
    count = len(handler_names())
    logger.info(
        "django_jobqueue %s starts %s; queues: %s; %d %s; %s; %s%s",
        identity.versions()["django-jobqueue"],
        _room(config, processes),
        ", ".join(config.queues) if config.queues else "every",
        count,
        "handler" if count == 1 else "handlers",
        _database(),
        f"release {conf.release}" if conf.release else "no release is set",
        f"; standby {config.standby!r}" if config.standby else "",
        extra={
            "event": Event.HOST_STARTED,
            "version": identity.versions()["django-jobqueue"],
            "release": conf.release,
            "processes": processes,
            "threads": config.threads,
            "async_slots": config.async_slots,
            "queues": config.queues,
            "handlers": count,
        },
    )
    for queue, hint in _unlikely_queues(config):
        logger.warning("No handler names the queue %r.%s", queue, hint)
    for module in missing_modules():
        logger.warning(
            "JOBQUEUE['MODULES'] names %r, which no installed app has", module
        )
    if processes is not None:
        _warn_of_threads()
    if not count:
        logger.warning(
            "There are no handlers, so no job can run. Declare functions with @job in "
            "the module %s of an app in INSTALLED_APPS",
            " or ".join(conf.modules),
        )


def _warn_of_threads() -> None:
    """A fork has no thread but its own, and the locks of the others as they were."""
    names = [t.name for t in threading.enumerate() if t is not threading.main_thread()]
    if names:
        logger.warning(
            "runworkers is about to fork, and its process has other threads: %s. "
            "Workers will not have them, and a lock that one of them holds now stays "
            "locked there. Start them in a receiver of the signal process_started",
            ", ".join(names),
        )


def _unlikely_queues(config: WorkerConfig) -> Iterator[tuple[str, str]]:
    """Queues to claim from whose names resemble that of a handler's queue. Any name can
    be right, since each enqueue may choose a queue; so other names cause no warning."""
    known = {declaration.policy.queue for declaration in registry.registry}
    for queue in config.queues or ():
        if queue not in known and (hint := did_you_mean(queue, known)):
            yield queue, hint


def _room(config: WorkerConfig, processes: int | None) -> str:
    workers = "an embedded worker"
    if processes is not None:
        workers = f"{processes} worker process{'es' if processes > 1 else ''}"
    threads = f"{config.threads} thread{'' if config.threads == 1 else 's'}"
    return f"{workers} with {threads} and {config.async_slots} async slots"


def _database() -> str:
    """The database of the jobs and its server, without the password, as far as they are
    known before the first connection."""
    given = connection_parameters()
    if entry := given.get("service"):  # libpq alone reads its file
        name, place = given.get("dbname"), f"by the service {entry!r}"
    else:
        parameters = {**_defaults(), **{k: v for k, v in given.items() if v}}
        name, place = parameters.get("dbname"), f"at {_server(parameters)}"
    which = f"which is {name!r} " if name else ""
    return f"database {conf.database!r}, {which}{place}"


def _defaults() -> dict[str, str]:
    """PGHOST, PGPORT and so on from the environment, and the defaults of libpq."""
    return {
        option.keyword.decode(): option.val.decode()
        for option in Conninfo.get_defaults()
        if option.val
    }


def _server(parameters: Mapping[str, Any]) -> str:
    host, port = (
        parameters.get("host") or parameters.get("hostaddr"),
        parameters.get("port"),
    )
    if host:
        return f"{host}:{port}" if port else str(host)
    if port and str(port) != DEFAULT_PORT:
        return f"the local socket of port {port}"
    return "the local socket"
