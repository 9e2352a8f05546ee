"""What a run was made on and with. Nothing here names a host, a user or a path."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

import django
import psutil
import psycopg

import django_jobqueue
from benchmarks.systems import ALL, OURS


def machine() -> dict[str, str]:
    """Cores, memory, processor, kernel."""
    return {
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "processor": _processor(),
        "kernel": f"{platform.system()} {platform.release()}",
    }


def versions() -> dict[str, str]:
    """Of the systems and of what they share."""
    found = {
        system.name: version(system.distribution)
        for system in ALL
        if system is not OURS
    }
    return {
        OURS.name: django_jobqueue.__version__,
        **found,
        "Python": platform.python_version(),
        "Django": django.__version__,
        "psycopg": psycopg.__version__,
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
