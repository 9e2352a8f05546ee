"""Preloaded by the fork server: Django is set up and everything imported once, so that
a command starts in hundredths of a second instead of one."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from pathlib import Path

import django
from django.conf import settings
from django.core.management import execute_from_command_line
from django.core.signals import setting_changed
from django.db import connections

django.setup()

import prometheus_client  # noqa: E402, F401

from django_jobqueue import embedded  # noqa: E402, F401
from django_jobqueue.checks import (  # noqa: E402, F401
    followers,
    key_limits,
    project_settings,
)
from django_jobqueue.contrib.alerts import alerter  # noqa: E402, F401
from django_jobqueue.contrib.alerts import checks as _checks  # noqa: E402, F401
from django_jobqueue.contrib.schedules import checks as _more  # noqa: E402, F401
from django_jobqueue.contrib.schedules import scheduler  # noqa: E402, F401
from django_jobqueue.host import exporter_child, maintenance_child  # noqa: E402, F401
from django_jobqueue.host.exporter import exporter_process  # noqa: E402, F401
from django_jobqueue.host.maintenance import host_maintenance  # noqa: E402, F401
from django_jobqueue.management.commands import jobqueue, runworkers  # noqa: E402, F401
from django_jobqueue.workers import worker_main  # noqa: E402, F401
from tests.sample import faults, telemetry  # noqa: E402

gc.collect()
gc.freeze()


def run_command(
    arguments: list[str], environment: dict[str, str], output: str, errors: str
) -> None:
    """Be ``manage.py`` with these arguments."""
    _begin(environment, output, errors)
    sys.argv = ["django", *arguments]
    sys.orig_argv = [sys.executable, "-m", "django", *arguments]
    execute_from_command_line(sys.argv)


def run_code(code: str, environment: dict[str, str], output: str, errors: str) -> None:
    """Be a program with this code, whose output is not buffered."""
    _begin(environment, output, errors)
    sys.stdout.reconfigure(write_through=True)  # type: ignore[union-attr]
    exec(compile(code, output, "exec"), {"__name__": "__main__"})


def _begin(environment: dict[str, str], output: str, errors: str) -> None:
    """Have this environment and this output, be the leader of a session, in the folder
    of the output."""
    os.setsid()
    os.chdir(Path(output).parent)
    for descriptor, path in ((1, output), (2, errors)):
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(file, descriptor)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    _read_settings_again()
    faults.install()
    telemetry.install()


def _read_settings_again() -> None:
    """Those that depend on the environment."""
    read = importlib.reload(importlib.import_module("tests.settings"))
    for alias, values in connections.configure_settings(read.DATABASES).items():
        connections.settings.setdefault(alias, {}).update(values)
    settings.JOBQUEUE = read.JOBQUEUE
    setting_changed.send(None, setting="JOBQUEUE", value=read.JOBQUEUE, enter=True)
