"""Our end of the enqueuing process."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.processes import Failed


class Enqueuer:
    """A system's enqueuing process, to be told what to do."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], log: Path
    ) -> None:
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                env=dict(env),
                cwd=log.parent,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self._answer()

    def many(
        self, jobs: int, *, first: int = 0, ms: int = 0, is_async: bool = False
    ) -> float:
        """Enqueue in bulk; returns the seconds that it took."""
        numbers = [first, first + jobs]
        answer = self._ask(do="many", numbers=numbers, ms=ms, is_async=is_async)
        return float(answer["ns"]) / 1e9

    def singles(self, *, blocks: int, of: int) -> dict[str, list[int]]:
        """``enqueues`` and bare ``inserts`` in turn, and by psycopg ``planned`` ones,
        which are not prepared; returns the ns of each."""
        return self._ask(do="singles", blocks=blocks, of=of)

    def paced(self, first: int, pauses: list[float]) -> list[int]:
        """One job after each pause; returns when each was committed, in ns."""
        returned: list[int] = self._ask(do="paced", first=first, pauses=pauses)[
            "returned"
        ]
        return returned

    def copies(self, *, blocks: int, of: int) -> tuple[list[int], list[int]]:
        """Bulk enqueues and bare COPYs in turn; returns the ns of each."""
        answer = self._ask(do="copies", blocks=blocks, of=of)
        return answer["enqueues"], answer["bare"]

    def steady(self, first: int, jobs: int, rate: float, ms: int) -> list[int]:
        """So many jobs a second; returns when each enqueue was begun, in ns."""
        answer = self._ask(do="steady", first=first, jobs=jobs, rate=rate, ms=ms)
        called: list[int] = answer["called"]
        return called

    def during(self, first: int, seconds: float, *, bare: bool = False) -> int:
        """As many enqueues, or bare INSERTs, as can be done; returns how many."""
        answer = self._ask(do="during", first=first, seconds=seconds, bare=bare)
        return int(answer["done"])

    def soak(self, seconds: float) -> dict[str, int]:
        """Jobs of all kinds; returns how many of each."""
        return self._ask(do="soak", seconds=seconds)

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Enqueuer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _ask(self, **command: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.close()
            raise Failed(f"The enqueuing process ended:\n{self._log.read_text()}")
        answer: dict[str, Any] = json.loads(line)
        return answer
