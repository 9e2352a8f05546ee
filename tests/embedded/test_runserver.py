"""``runserver`` with a worker beside its application, a process that is reloaded."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError, URLError
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


class RunServer:
    """A real ``runserver``."""

    def __init__(self, folder: Path) -> None:
        (folder / "served_settings.py").write_text(SETTINGS)
        self.wsgi = folder / "served_wsgi.py"
        self.wsgi.write_text(WSGI)
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{one.getsockname()[1]}"
        self.env = {
            **worker_environment(),
            "DJANGO_SETTINGS_MODULE": "served_settings",
            "PYTHONPATH": f"{ROOT}:{folder}",
        }
        self.log = folder / "runserver.log"
        with self.log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "django", "runserver", self.address],
                env=self.env,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    def manage(self, *arguments: str) -> None:
        """Run another command of the same project."""
        subprocess.run(
            [sys.executable, "-m", "django", *arguments],
            env=self.env,
            check=True,
            capture_output=True,
        )

    def answers(self) -> bool:
        """Send a request; False while nobody serves."""
        try:
            urlopen(f"http://{self.address}/nowhere", timeout=20)  # noqa: S310
        except HTTPError:
            return True
        except (URLError, OSError):
            return False
        return True

    def close(self) -> None:
        """End it in any case."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def runserver(tmp_path: Path) -> Iterator[RunServer]:
    made = RunServer(tmp_path)
    yield made
    made.close()


def states() -> list[str]:
    """Of all workers, the oldest first."""
    return [row.state for row in Worker.objects.order_by("id")]


def over(of_some: list[str]) -> bool:
    """Whether none of these workers is there any more, by their states."""
    return set(of_some) <= {"stopped", "lost"}


def has_reloaded(runserver: RunServer) -> bool:
    """Whether its worker was stopped. A file that it sees for the first time now is not
    yet one that changes, so there is a further change each time."""
    runserver.wsgi.touch()
    return "stopped" in states()


def serves_with_two_threads(runserver: RunServer) -> bool:
    """Whether a worker of the new code runs there. The last touch may have led to one
    more reload."""
    running = Worker.objects.filter(state="running", threads=2)
    return runserver.answers() and running.exists()


def test_jobs_run_in_the_process_that_serves_and_with_its_code_after_a_reload(
    runserver: RunServer,
) -> None:
    runserver.manage("check")
    eventually(runserver.answers, what=runserver.log.read_text())
    jobs.add.enqueue(1)
    eventually(lambda: archived(), what=runserver.log.read_text())
    assert states() == ["running"]  # in no other process, and by no other command

    runserver.wsgi.write_text(WSGI.replace("threads=1", "threads=2"))
    eventually(lambda: has_reloaded(runserver), what=runserver.log.read_text())
    eventually(lambda: serves_with_two_threads(runserver))

    os.killpg(runserver.process.pid, signal.SIGINT)  # Ctrl-C
    runserver.process.wait(30)
    # It has a quarter of a second: then Django kills it, and its successor knows.
    with django_jobqueue.worker():
        eventually(lambda: states()[-1] == "running" and over(states()[:-1]))
