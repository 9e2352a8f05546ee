"""A small project of its own, in a folder, whose tests run in another process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

from tests.support.commands import ROOT

SETTINGS = """
SECRET_KEY = "tests"
USE_TZ = True
INSTALLED_APPS = [
    "django.contrib.auth", "django.contrib.contenttypes", "rangefilter",
    "django_jobqueue", "shop",
]
"""
JOBS = """
from django.contrib.auth.models import User
from django_jobqueue import job

@job
def greet(name: str) -> str:
    User.objects.create(username=name)
    return f"Hello, {name}!"
"""


def make(folder: Path, files: Mapping[str, str], *, settings: str) -> None:
    """Write the project: an app ``shop`` with a module of handlers, and these files."""
    written = {
        "site_settings.py": SETTINGS + textwrap.dedent(settings),
        "shop/__init__.py": "",
        "shop/jobs.py": JOBS,
        **{name: textwrap.dedent(text) for name, text in files.items()},
    }
    for name, text in written.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments there."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={
            **kept,
            "DJANGO_SETTINGS_MODULE": "site_settings",
            "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
            **env,
        },
        capture_output=True,
        text=True,
    )
