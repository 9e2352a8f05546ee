"""Lists the jobs that a stop cut off: in a file if a folder is set, else in the log.

Every process writes a part of the file, the supervisor merges them. Nothing here may
keep a process from its end, so whatever goes wrong with a file is a warning.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

logger = logging.getLogger("django_jobqueue.worker")

LOGGED: Final = 20  # jobs that one process lists in the log
UNFINISHED: Final = ".unfinished"  # a file that is being written
PRIVATE: Final = 0o600  # masked or not, data are not for everybody


class UnfinishedJobsDump:
    """The list of unfinished jobs, for people: a file in DUMP_DIR, or log lines. The
    jobs themselves stay in the database."""

    def __init__(self, folder: str | None, name: str) -> None:
        self.path: Path | None = None
        if folder:
            stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
            file = f"jobqueue-unfinished-{name.replace(':', '-')}-{stamp}.json"
            self.path = Path(folder).resolve() / file

    @property
    def where(self) -> str:
        """Where the list is, for people."""
        return "this log" if self.path is None else str(self.path)

    def add(self, part: str, jobs: Sequence[dict[str, Any]]) -> None:
        """Write what one process knows; each job has at least ``id`` and ``job_type``.

        Without a folder, or if it cannot be written to, the log has the list.
        """
        if not jobs:
            return
        if self.path is not None:
            try:
                _write(self._part(self.path, part), json.dumps(jobs))
            except OSError as error:
                logger.warning("No list of unfinished jobs is written: %s", error)
            else:
                return
        logger.warning("%d unfinished jobs: %s", len(jobs), _named(jobs))

    def merge(self) -> None:
        """Make one file of the parts, and say where it is."""
        if self.path is None:
            return
        for cut_off in self._parts(self.path, UNFINISHED):
            cut_off.unlink(missing_ok=True)
        jobs: dict[str, dict[str, Any]] = {}
        merged = []
        for part in self._parts(self.path):
            try:
                listed = _read(part)
            except (OSError, ValueError, RecursionError) as error:
                logger.warning(
                    "%s is not a list of jobs, and is left alone: %s", part, error
                )
                continue
            for job in listed:
                jobs.setdefault(job["id"], {}).update(job)
            merged.append(part)
        if jobs:
            self._finish(self.path, list(jobs.values()), merged)

    def _finish(
        self, path: Path, jobs: list[dict[str, Any]], parts: list[Path]
    ) -> None:
        content = {"stopped_at": str(datetime.now(UTC)), "jobs": jobs}
        try:
            _write(path, json.dumps(content, indent=2) + "\n")
            for part in parts:
                part.unlink()
        except OSError as error:
            logger.warning(
                "The lists of %d unfinished jobs stay in parts: %s", len(jobs), error
            )
        else:
            logger.warning("%d unfinished jobs were released; see %s", len(jobs), path)

    def _parts(self, path: Path, suffix: str = "") -> list[Path]:
        pattern = self._part(path, "*").name + suffix
        try:
            return sorted(filter(_is_ours, path.parent.glob(pattern)))
        except OSError as error:
            logger.warning("The lists of unfinished jobs cannot be read: %s", error)
            return []

    @staticmethod
    def _part(path: Path, part: str) -> Path:
        return path.with_suffix(f".{part}.part")


def problem(folder: str) -> str | None:
    """Why no file can be written to this folder; None if one can."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return error.strerror or str(error)


def _write(path: Path, text: str) -> None:
    """Write a file that is there whole, or not at all, and only for us to read. Raises
    OSError."""
    unfinished = path.with_name(path.name + UNFINISHED)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    descriptor = os.open(unfinished, flags, PRIVATE)
    try:
        with open(descriptor, "w") as file:
            file.write(text)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def _is_ours(path: Path) -> bool:
    """True if it is a file, and we wrote it: others may write to this folder, too.
    Raises OSError."""
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()


def _read(part: Path) -> list[dict[str, Any]]:
    """The jobs of a part. Raises OSError, ValueError and RecursionError."""
    jobs = json.loads(part.read_text())
    if not isinstance(jobs, list) or not all(map(_is_job, jobs)):
        raise ValueError("it has no jobs")
    return jobs


def _is_job(listed: object) -> bool:
    return isinstance(listed, dict) and isinstance(listed.get("id"), str)


def _named(jobs: Sequence[dict[str, Any]]) -> str:
    """For the log: which jobs these are. Data are never logged."""
    shown = []
    for job in jobs[:LOGGED]:
        ran = f", ran {job['ran_seconds']:g} s" if job.get("started") else ""
        shown.append(f"{job['id']} ({job['job_type']}{ran})")
    more = len(jobs) - len(shown)
    return ", ".join(shown) + (f", and {more} more" if more else "")
