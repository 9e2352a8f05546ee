"""Which systems can be run on this machine."""

from __future__ import annotations

from benchmarks import redis
from benchmarks.environment import NODE
from benchmarks.systems import ALL
from benchmarks.systems.base import System


def left_out() -> dict[str, str]:
    """The systems that cannot be run here, and what each lacks."""
    lacks = {system.name: lack(system) for system in ALL}
    return {name: what for name, what in lacks.items() if what}


def lack(system: System) -> str:
    """What is missing on this machine to run it; empty if nothing is."""
    if system.is_node and not (NODE / ".made").exists():
        return "there is no npm here, or it could not install it"
    if system.on_redis and not redis.is_installed():
        return "there is no redis-server here"
    return ""
