"""Preloaded by the fork server: Django is set up and everything imported once, so that a
command starts in hundredths of a second instead of one."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import django
from django.conf import settings
from django.core.management import execute_from_command_line
from django.core.signals import setting_changed
from django.db import connections

django.setup()

from django_jobqueue.host import exporter_child, maintenance_child  # noqa: E402, F401
from django_jobqueue.host.exporter import exporter_process  # noqa: E402, F401
from django_jobqueue.host.maintenance import host_maintenance  # noqa: E402, F401
from django_jobqueue.management.commands import jobqueue, runworkers  # noqa: E402, F401
from django_jobqueue.workers import worker_main  # noqa: E402, F401
from testproject.postgres import database_settings  # noqa: E402
from tests.sample import faults, telemetry  # noqa: E402

gc.collect()
gc.freeze()


def run_command(
    arguments: list[str], environment: dict[str, str], output: str, errors: str
) -> None:
    """Be ``manage.py`` with these arguments: with its environment and its output, the
    leader of a session, in the folder of the output."""
    os.setsid()
    os.chdir(Path(output).parent)
    for descriptor, path in ((1, output), (2, errors)):
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(file, descriptor)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    url = environment["DATABASE_URL"]
    connections.settings["default"].update(database_settings(url))
    setting_changed.send(None, setting="JOBQUEUE", value=settings.JOBQUEUE, enter=True)
    faults.install()
    telemetry.install()
    sys.argv = ["django", *arguments]
    sys.orig_argv = [sys.executable, "-m", "django", *arguments]
    execute_from_command_line(sys.argv)
