"""The quickstart, followed to the letter in an empty folder."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import load_command_class
from django.db import connections

from tests.docs.pages import examples
from tests.support.commands import ROOT
from tests.support.waiting import eventually

PAGE = "docs/quickstart.md"
DATABASE = f"quickstart_{os.getpid()}"

# Environment and packages are those of the tests; a web server would have no visitor.
NOT_HERE = (
    "python3 -m venv",
    ". venv",
    "python -m pip",
    "createdb",
    "python manage.py runserver",
)
SETTINGS = {"INSTALLED_APPS": r"\[.*?^\]\n", "DATABASES": r"\{.*?^\}\n"}


class Site:
    """The project that a reader makes."""

    def __init__(self, folder: Path, server: dict[str, str]) -> None:
        self.folder = folder
        self.server = server
        self.env = {
            **{
                name: os.environ[name]
                for name in ("PATH", "HOME")
                if name in os.environ
            },
            **server,
            "PYTHONPATH": str(ROOT),
            "DJANGO_SUPERUSER_PASSWORD": "secret",
        }
        self.workers: subprocess.Popen[str] | None = None

    def do(self, command: str) -> str:
        """Type this; returns what it prints."""
        words = shlex.split(command)
        if words[0] == "django-admin":
            words[:1] = ["python", "-m", "django"]
        if "createsuperuser" in words:
            words.append("--noinput")  # instead of asking for a password
        words[0] = sys.executable
        if words[1:] == ["manage.py", "runworkers"]:
            self.workers = subprocess.Popen(
                words, cwd=self.folder, env=self.env, text=True
            )
            return ""
        done = subprocess.run(
            words, cwd=self.folder, env=self.env, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def write(self, text: str) -> None:
        """Put a block of Python where the page says that it belongs."""
        name = text.partition(" = ")[0]
        if name not in SETTINGS:
            with (self.folder / "accounts" / "jobs.py").open("a") as jobs:
                jobs.write(text)
            return
        path = self.folder / "mysite" / "settings.py"
        new = text.replace('"NAME": "mysite"', f'"NAME": "{DATABASE}"')
        pattern = re.compile(f"^{name} = {SETTINGS[name]}", re.DOTALL | re.MULTILINE)
        changed, count = pattern.subn(lambda match: new, path.read_text())
        assert count == 1
        path.write_text(changed)

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement on its database."""
        with connect(self.server, DATABASE) as connection:
            return connection.execute(statement).fetchall()


def connect(
    server: dict[str, str], database: str
) -> psycopg.Connection[tuple[Any, ...]]:
    """A connection to a database of this server."""
    return psycopg.connect(
        host=server["PGHOST"],
        port=server["PGPORT"] or None,
        user=server["PGUSER"] or None,
        password=server["PGPASSWORD"] or None,
        dbname=database,
        autocommit=True,
    )


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """An empty folder, and an empty database."""
    held = connections["default"].settings_dict
    keys = {
        "PGHOST": "HOST",
        "PGPORT": "PORT",
        "PGUSER": "USER",
        "PGPASSWORD": "PASSWORD",
    }
    server = {name: str(held[key] or "") for name, key in keys.items()}
    with connect(server, "postgres") as connection:
        connection.execute(f"CREATE DATABASE {DATABASE}")
        made = Site(tmp_path, server)
        try:
            yield made
        finally:
            if made.workers is not None and made.workers.poll() is None:
                made.workers.kill()
                made.workers.wait()
            connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


def commands(block: str) -> list[str]:
    """What is to be typed, of a block of the page."""
    typed = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    return [command for command in typed if not command.startswith(NOT_HERE)]


@pytest.mark.processes
@pytest.mark.slow("starts nine commands; test_examples runs the page's code")
def test_the_quickstart_can_be_followed_to_the_letter(site: Site) -> None:
    done = []
    for block in examples(PAGE):
        if not block.is_shown:
            continue
        if block.language == "python":
            site.write(block.text)
            continue
        for command in commands(block.text):
            site.do(command)
            done.append(command)
            if site.workers is not None:
                eventually(lambda: len(site.ask(SUCCEEDED)) == 2)
    assert len(done) >= 9
    assert site.ask(SUCCEEDED) == [("Hello, anna!",)] * 2
    eventually(lambda: site.ask(FAILED))
    assert site.workers is not None
    site.workers.send_signal(signal.SIGINT)
    assert site.workers.wait(20) == 0


def test_its_commands_are_understood() -> None:
    typed = [c for each in examples(PAGE) for c in commands(each.text)]
    ours = [c.partition("manage.py ")[2] for c in typed if re.search("jobq|runw", c)]
    assert len(ours) >= 4
    for name, *words in map(shlex.split, ours):
        command = load_command_class("django_jobqueue", name)
        assert command.create_parser("manage.py", name).parse_args(words)


SUCCEEDED = """
SELECT result FROM jobqueue_archivedjob WHERE status = 'succeeded'
"""
FAILED = """
SELECT 1 FROM jobqueue_failure WHERE error_class LIKE '%DoesNotExist'
"""
