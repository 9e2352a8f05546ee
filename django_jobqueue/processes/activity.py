"""When a worker last had something to do."""

from __future__ import annotations

import time
from collections.abc import Callable


class Stir:
    """Called when there is something to do, it wakes those who rest while there is not.

    It is called once for each claim, from any thread, and costs less than a
    microsecond. Who rests says so first, and then looks whether there is something:
    who has something hands it over first, and then calls this. So nothing is missed.
    """

    def __init__(self) -> None:
        self.last = time.monotonic()
        self._wake: list[Callable[[], None]] = []

    def wakes(self, wake: Callable[[], None]) -> None:
        """Have this called as well; it costs next to nothing while nobody rests."""
        self._wake.append(wake)

    def __call__(self) -> None:
        """There is something to do."""
        self.last = time.monotonic()
        for wake in self._wake:
            wake()
