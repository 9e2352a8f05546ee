"""``runserver`` with a worker beside its application, a process that is reloaded."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

import django_jobqueue
from django_jobqueue.models import Worker
from tests.sample import jobs
from tests.support.commands import ROOT, worker_environment
from tests.support.rows import archived
from tests.support.waiting import eventually

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

SETTINGS = """
from tests.settings import *
DEBUG = True
WSGI_APPLICATION = "served_wsgi.application"
"""
WSGI = """
from django.core.wsgi import get_wsgi_application
from django_jobqueue.embedded import wsgi

application = wsgi(get_wsgi_application(), threads=1, async_slots=1)
"""


@pytest.fixture
def runserver(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Runs commands of a project whose application has a worker beside it."""
    (tmp_path / "served_settings.py").write_text(SETTINGS)
    (tmp_path / "served_wsgi.py").write_text(WSGI)
    env = {
        **worker_environment(),
        "DJANGO_SETTINGS_MODULE": "served_settings",
        "PYTHONPATH": f"{ROOT}:{tmp_path}",
    }
    made: list[subprocess.Popen[bytes]] = []

    def run(*command: str) -> subprocess.Popen[bytes]:
        with (tmp_path / "log").open("ab") as file:
            made.append(
                subprocess.Popen(
                    [sys.executable, "-m", "django", *command],
                    env=env,
                    stdout=file,
                    stderr=file,
                    start_new_session=True,
                )
            )
        return made[-1]

    yield run
    for process in made:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def states() -> list[str]:
    return [row.state for row in Worker.objects.order_by("id")]


def answers(address: str) -> bool:
    try:
        urlopen(f"http://{address}/nowhere", timeout=20)  # noqa: S310
    except HTTPError:
        return True
    except OSError:
        return False
    return True


@pytest.mark.slow("starts Python four times")
def test_jobs_run_in_the_process_that_serves_and_with_its_code_after_a_reload(
    runserver: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{one.getsockname()[1]}"
    serves = runserver("runserver", address)
    log, wsgi = (tmp_path / "log").read_text, tmp_path / "served_wsgi.py"
    eventually(lambda: answers(address), within=60, what=log)
    jobs.add.enqueue(1)
    eventually(archived, what=log)
    assert states() == ["running"]  # not in the process that watches its files

    def has_reloaded() -> bool:
        # A file that it sees for the first time is not yet one that changes.
        wsgi.touch()
        return "stopped" in states()

    def serves_with_two_threads() -> bool:
        # The last touch may have led to one more reload.
        running = Worker.objects.filter(state="running", threads=2)
        return answers(address) and running.exists()

    wsgi.write_text(WSGI.replace("threads=1", "threads=2"))
    eventually(has_reloaded, within=60, what=log)
    eventually(serves_with_two_threads, within=60, what=log)

    os.killpg(serves.pid, signal.SIGINT)  # Ctrl-C
    serves.wait(30)
    # It has a quarter of a second: then Django kills it, and its successor knows.
    with django_jobqueue.worker():
        over = {"stopped", "lost"}
        eventually(lambda: states()[-1] == "running" and {*states()[:-1]} <= over)
