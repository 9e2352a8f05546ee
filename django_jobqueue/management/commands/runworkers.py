"""``manage.py runworkers``: claim jobs and run them."""

from __future__ import annotations

import errno
import logging
import math
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.apps import apps
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections

from django_jobqueue import checks, rooms
from django_jobqueue.conf import Conf, conf
from django_jobqueue.domain.lease_names import standby_problem
from django_jobqueue.domain.log_events import Event
from django_jobqueue.domain.registry import BY_ENDPOINTS, autodiscover
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.host.code_trial import Program
from django_jobqueue.host.exporter.scrape_server import listen, url_of
from django_jobqueue.host.exporter_child import LISTENED
from django_jobqueue.host.liveness import AlreadyRunning, pid_file
from django_jobqueue.host.maintenance.sleep_check import WAY_OUT
from django_jobqueue.host.startup_log import log_start
from django_jobqueue.host.supervisor import Supervisor
from django_jobqueue.logs import JsonFormatter, TextFormatter
from django_jobqueue.management.jobqueue import database
from django_jobqueue.management.jobqueue.inputs import duration
from django_jobqueue.management.reloader import Reloader, is_reloaded
from django_jobqueue.processes.identity import name_process
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store import database_identity
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.text.durations import DURATIONS

logger = logging.getLogger("django_jobqueue.supervisor")

FORMATTERS = {"text": TextFormatter, "json": JsonFormatter}
LEASES = "django_jobqueue.contrib.leases"  # holds the lease of a host that stands by
LEVELS = {1: logging.INFO, 2: logging.INFO, 3: logging.DEBUG}


class Command(BaseCommand):
    """Run a supervisor and its worker processes until a signal, or until drained."""

    help = (
        "Run workers: a supervisor and its worker processes. The first SIGTERM or "
        "SIGINT lets running jobs finish, the second stops at once. Each setting of "
        "the JOBQUEUE dict has a flag of its name, which wins over it and over the "
        "environment variable JOBQUEUE_<NAME>. Lists are written a,b and dicts "
        "a=1,b=none."
    )

    # The admin and the templates of a project are no concern of its workers.
    requires_system_checks = ("jobqueue",)

    def create_parser(
        self, prog_name: str, subcommand: str, **options: Any
    ) -> CommandParser:
        """Take no abbreviations: a new setting would make them ambiguous."""
        return super().create_parser(
            prog_name, subcommand, allow_abbrev=False, **options
        )

    def add_arguments(self, parser: CommandParser) -> None:
        """A flag for every setting, and those of this command alone."""
        parser.add_argument(
            "--drain", action="store_true", help="Stop when no job can run now."
        )
        parser.add_argument(
            "--drain-all",
            action="store_true",
            help="Stop when no job is left that could run here, including retries and "
            "jobs for later.",
        )
        parser.add_argument(
            "--drain-timeout",
            metavar="DURATION",
            help="Stop --drain-all after this time, with exit code 3 if jobs are left. "
            f"{DURATIONS}",
        )
        parser.add_argument(
            "--standby",
            metavar="NAME",
            default="",
            help=(
                "Work only while no other runworkers with this name does; otherwise "
                "wait, and take over within LEASE and a second when the active one "
                "is lost."
            ),
        )
        parser.add_argument(
            "--reload",
            action="store_true",
            help="For development: start new workers whenever the code changes.",
        )
        parser.add_argument(
            "--check",
            action="store_true",
            help="Load all code, make the checks of a start, and end before the first "
            "worker starts.",
        )
        parser.add_argument(
            "--pidfile",
            metavar="PATH",
            help="Keep the process id in this file, and refuse to start twice.",
        )
        settings = parser.add_argument_group("settings")
        for name, setting in Conf.settings.items():
            settings.add_argument(
                setting.flag,
                dest=f"setting_{name}",
                metavar="VALUE",
                help=f"{setting.help} ({setting.default})".replace("%", "%%"),
            )

    def handle(self, **options: Any) -> None:
        """Run until stopped. Raises CommandError for a flag that makes no sense.

        Code that calls this and goes on finds its process as it was.
        """
        if threading.current_thread() is not threading.main_thread():
            raise CommandError(
                "runworkers listens to signals, so it must be called in the main "
                "thread. In another one use django_jobqueue.worker()."
            )
        for alias in connections:
            if connections[alias].in_atomic_block:
                raise CommandError(
                    f"A transaction is open on the database {alias!r}, and it would be "
                    "lost: runworkers closes all connections before it forks. Call it "
                    "outside of transaction.atomic(); tests in a transaction have "
                    "django_jobqueue.testing.drain()."
                )
        flags = self._flags(options)
        if options["verbosity"] > 1:
            flags.setdefault("LOG_SUCCESSES", True)
        self._supervisor: Supervisor | None = None
        with conf.override(flags), _logging(options["verbosity"]):
            if "MODULES" in flags:
                autodiscover()
            code = self._run(flags, options)
        if self._supervisor is not None:
            self._supervisor.restart_program()
        if code:
            sys.exit(code)

    def _run(self, flags: dict[str, Any], options: dict[str, Any]) -> int:
        config = WorkerConfig(
            queues=tuple(conf.queues) if conf.queues else None,
            threads=conf.threads,
            async_slots=conf.async_slots,
            drain=options["drain"],
            drain_all=options["drain_all"],
            drain_timeout=self._drain_timeout(options),
            standby=options["standby"],
        )
        database.check(conf.database)
        rooms.offer("handlers", BY_ENDPOINTS)  # processes fork after it
        if "DUMP_DIR" in flags:  # else it was checked before
            for message in checks.check_dump_folder(None):
                logger.warning("%s (%s) %s", message.msg, message.id, message.hint)
        if not config.threads and not config.async_slots:
            raise CommandError("With --threads 0 and --async-slots 0 nothing can run.")
        self._check_ends(options)
        if config.standby:
            _check_standby(config.standby)
        if options["check"]:
            return 0
        _ensure_can_drain(config)
        if options["reload"] and not is_reloaded():
            return Reloader().run()
        try:
            with pid_file(options.get("pidfile")):
                return self._supervise(config, self._no_restart(options))
        except AlreadyRunning as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            if error.filename is None or error.filename != options.get("pidfile"):
                raise
            raise CommandError(f"--pidfile: {error}") from error

    @staticmethod
    def _check_ends(options: dict[str, Any]) -> None:
        drain, drain_all = options["drain"], options["drain_all"]
        if drain and drain_all:
            raise CommandError(
                "--drain leaves later jobs and --drain-all waits for them; choose one "
                "of them."
            )
        if options["reload"] and (drain or drain_all):
            flag = "--drain-all" if drain_all else "--drain"
            raise CommandError(f"--reload goes on and {flag} ends; choose one of them.")

    @staticmethod
    def _drain_timeout(options: dict[str, Any]) -> float:
        text = options["drain_timeout"]
        if text is None:
            return math.inf
        if not options["drain_all"]:
            raise CommandError("--drain-timeout belongs to --drain-all.")
        return duration("--drain-timeout", text).total_seconds()

    def _no_restart(self, options: dict[str, Any]) -> str:
        """Why operators cannot have this process load its code again, if so."""
        if options["reload"]:
            return "It runs with --reload, which starts new code by itself."
        if not getattr(self, "_called_from_command_line", False):
            return "Code of another program called runworkers; restart that program."
        return ""

    def _supervise(self, config: WorkerConfig, no_restart: str) -> int:
        with _listening() as listening:
            log_start(config, conf.processes)
            if listening is not None:
                logger.info(
                    "Metrics at %s/metrics",
                    url_of(listening),
                    extra={"event": Event.EXPORTER_STARTED, "url": url_of(listening)},
                )
            before = name_process("jq:supervisor")
            try:
                self._supervisor = Supervisor(
                    config,
                    conf.processes,
                    listening,
                    program=None if no_restart else Program.of_this_process(),
                    no_program=no_restart,
                )
                return self._supervisor.run()
            finally:
                name_process(before)

    @staticmethod
    def _flags(options: dict[str, Any]) -> dict[str, Any]:
        flags = {}
        for name, setting in Conf.settings.items():
            text = options.get(f"setting_{name}")
            if text is None:
                continue
            value = setting.parse(str(text))
            problem = setting.problem(value)
            if problem:
                raise CommandError(f"{setting.flag} {problem}.")
            flags[name] = setting.over(conf.read(name), value)
        return flags


def _check_standby(name: str) -> None:
    if problem := standby_problem(name):
        raise CommandError(f"--standby {problem}")
    if not apps.is_installed(LEASES):
        raise CommandError(f"--standby needs {LEASES!r} in INSTALLED_APPS.")


def _ensure_can_drain(config: WorkerConfig) -> None:
    """Raises CommandError where hosts do nothing, so that a drain would never end."""
    if not (config.drain or config.drain_all):
        return
    connection = OwnConnection("check", pooled=True)
    try:
        sleep = database_identity.read_sleep(connection)
    except (StoreUnavailable, psycopg.Error):  # the host waits for the database
        return
    finally:
        connection.close()
    if sleep is not None:
        raise CommandError(f"{sleep.value} {WAY_OUT}")


@contextmanager
def _listening() -> Iterator[socket.socket | None]:
    """A socket at METRICS_PORT, which is bound before the first fork; None without a
    port. Raises CommandError."""
    host, port = conf.metrics_host, conf.metrics_port
    before = os.environ.pop(LISTENED, "")
    if port is None:
        yield None
        return
    try:
        listening = _listen_again(host, before) if port == 0 and before else None
        listening = listening or listen(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise CommandError(
                f"Port {port} on {host} is in use ({error.strerror}). Choose another "
                "one, or --metrics-port 0."
            ) from error
        raise CommandError(
            f"Port {port} on {host} cannot be used: {error.strerror}."
        ) from error
    with listening:
        yield listening


def _listen_again(host: str, port: str) -> socket.socket | None:
    """The port that this host had before an operator restarted it; None if somebody
    else has it by now."""
    try:
        return listen(host, int(port))
    except (OSError, ValueError, OverflowError):
        return None


@contextmanager
def _logging(verbosity: int) -> Iterator[None]:
    """Say what happens, unless the project's LOGGING has decided that already."""
    logger = logging.getLogger("django_jobqueue")
    if logger.hasHandlers() or verbosity == 0:
        yield
        return
    handler, level = logging.StreamHandler(), logger.level
    handler.setFormatter(FORMATTERS[conf.log_format]())
    logger.addHandler(handler)
    logger.setLevel(LEVELS.get(verbosity, logging.INFO))
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
