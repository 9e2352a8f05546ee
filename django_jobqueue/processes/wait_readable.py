"""Waits until file descriptors can be read."""

from __future__ import annotations

import select


def wait_readable(*descriptors: int, within: float) -> list[int]:
    """Wait up to ``within`` seconds; return the descriptors that can be read, or whose
    other end is closed.

    Not ``select.select()``, which fails for every descriptor above 1,023: a process has
    that many when its handlers open files or sockets.
    """
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _event in poll.poll(within * 1_000)]
