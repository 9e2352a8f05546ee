"""Finds how long systemd, Docker or Kubernetes wait for a host of this machine to
stop."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

PROC: Final = Path("/proc")
CONTAINER: Final = Path("/.dockerenv")
OF_KUBERNETES: Final = 30.0  # seconds, unless the pod says otherwise
OF_DOCKER: Final = 10.0
ASKED: Final = "systemctl show --property=TimeoutStopUSec --property=NotifyAccess"
LONGEST_ANSWER: Final = 5  # seconds
UNITS: Final = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3_600.0,
    "d": 86_400.0,
    "w": 604_800.0,
}
_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|min|h|d|w)\b")
_UNIT: Final = re.compile(r"/([^/]+\.service)$", re.MULTILINE)


class StopTimeout(NamedTuple):
    """The program that kills a host, the seconds after its stop request, and the name
    of the option. If the process cannot know them, they are the defaults."""

    who: str
    option: str
    seconds: float
    is_certain: bool


def stop_timeouts(pids: Iterable[int]) -> list[StopTimeout]:
    """Of the processes with these ids, and of the container that this one is in."""
    units = dict.fromkeys(unit for pid in pids if (unit := _unit_of(pid)))
    timeouts = [timeout for unit in units if (timeout := _of_unit(unit))]
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        option = "terminationGracePeriodSeconds"
        timeouts.append(StopTimeout("Kubernetes", option, OF_KUBERNETES, False))
    elif CONTAINER.exists():
        timeouts.append(StopTimeout("Docker", "stop_grace_period", OF_DOCKER, False))
    return timeouts


def _unit_of(pid: int) -> str | None:
    """The service of systemd that this process belongs to."""
    try:
        groups = (PROC / str(pid) / "cgroup").read_text()
    except OSError:  # it has ended, or is hidden
        return None
    match = _UNIT.search(groups)
    return match[1] if match else None


def _of_unit(unit: str) -> StopTimeout | None:
    """The unit's limit in systemd; None if there is none, or no answer. A host that may
    notify systemd asks it to wait longer."""
    try:
        answer = subprocess.run(
            [*ASKED.split(), "--", unit],
            capture_output=True,
            check=True,
            text=True,
            timeout=LONGEST_ANSWER,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    properties = dict(line.split("=", 1) for line in answer.splitlines() if "=" in line)
    spans = _SPAN.findall(properties.get("TimeoutStopUSec", ""))
    if not spans or properties.get("NotifyAccess", "none") != "none":
        return None
    seconds = sum(float(number) * UNITS[unit] for number, unit in spans)
    return StopTimeout(f"systemd's {unit}", "TimeoutStopSec", seconds, True)
