"""What a run was made on and with. Nothing here names a host, a user or a path."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import version
from pathlib import Path

import django
import psutil
import psycopg

import django_jobqueue
from benchmarks import redis
from benchmarks.environment import NODE
from benchmarks.presence import lack
from benchmarks.systems import ALL, OURS
from benchmarks.systems.base import System


def machine() -> dict[str, str]:
    """Cores, memory, processor, kernel."""
    return {
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "processor": _processor(),
        "kernel": f"{platform.system()} {platform.release()}",
    }


def versions() -> dict[str, str]:
    """Of the systems that can be run here and of what they share."""
    here = [system for system in ALL if not lack(system)]
    found = {s.name: _version(s) for s in here if s is not OURS}
    if any(system.is_node for system in here):
        found["Node"] = _version_on_node("node")
    if any(system.on_redis for system in here):
        found["Redis"] = redis.version()
    return {
        OURS.name: django_jobqueue.__version__,
        **found,
        "Python": platform.python_version(),
        "Django": django.__version__,
        "psycopg": psycopg.__version__,
    }


def _version(system: System) -> str:
    if system.is_node:
        return _version_on_node(system.distribution)
    return version(system.distribution)


def _version_on_node(package: str) -> str:
    said = json.loads((NODE / "node_modules" / package / "package.json").read_text())
    return str(said["version"])


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
