"""The dump of unfinished jobs: every process writes a part, the supervisor merges."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class Dump:
    """A JSON file for people. The jobs themselves stay in the database."""

    def __init__(self, folder: str, name: str) -> None:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        name = name.replace(":", "-")
        self.path = Path(folder).resolve() / f"jobqueue-unfinished-{name}-{stamp}.json"

    def add(self, part: str, jobs: Sequence[dict[str, Any]]) -> None:
        """Write what one process knows; each job has at least an ``id``."""
        if jobs:
            self._part(part).write_text(json.dumps(jobs))

    def merge(self) -> int:
        """Make one file of the parts; return the number of jobs in it."""
        jobs: dict[str, dict[str, Any]] = {}
        for part in sorted(self.path.parent.glob(self._part("*").name)):
            for job in json.loads(part.read_text()):
                jobs.setdefault(job["id"], {}).update(job)
            part.unlink()
        if jobs:
            content = {"stopped_at": str(datetime.now(UTC)), "jobs": [*jobs.values()]}
            self.path.write_text(json.dumps(content, indent=2) + "\n")
        return len(jobs)

    def _part(self, part: str) -> Path:
        return self.path.with_suffix(f".{part}.part")
