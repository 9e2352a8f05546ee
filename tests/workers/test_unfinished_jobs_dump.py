"""The list of unfinished jobs, in a file or in the log."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from django_jobqueue.workers.unfinished_jobs_dump import (
    LOGGED,
    UnfinishedJobsDump,
    problem,
)

Jobs = list[dict[str, Any]]


def unfinished(*ids: str, **more: Any) -> Jobs:
    return [{"id": id, "job_type": "shop.pay", **more} for id in ids]


def listed(folder: Path) -> dict[str, dict[str, Any]]:
    """What the one file in this folder says, by id."""
    (file,) = folder.glob("*.json")
    return {job["id"]: job for job in json.loads(file.read_text())["jobs"]}


@pytest.fixture
def dump(tmp_path: Path) -> UnfinishedJobsDump:
    """One to this folder, that knows of a job."""
    made = UnfinishedJobsDump(str(tmp_path), "web-3:7")
    made.add("8", unfinished("a"))
    return made


def beside(dump: UnfinishedJobsDump, suffix: str = "") -> Path:
    """Its file, or one of the parts."""
    return dump.path.with_suffix(suffix or dump.path.suffix)


def test_what_processes_know_of_a_job_is_merged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dump = UnfinishedJobsDump(str(tmp_path), "web-3:7")
    dump.add("8", [])
    dump.merge()
    assert list(tmp_path.iterdir()) == []

    dump.add("8", unfinished("a", "b", attempt=2))
    dump.add("maintenance", unfinished("a", became="queued"))
    # One that was cut off while it was written.
    beside(dump, ".9.part.unfinished").write_text('[{"id": "b')
    dump.merge()
    assert listed(tmp_path) == {
        "a": {"id": "a", "job_type": "shop.pay", "attempt": 2, "became": "queued"},
        "b": {"id": "b", "job_type": "shop.pay", "attempt": 2},
    }
    assert [file.name for file in tmp_path.iterdir()] == [beside(dump).name]
    assert caplog.messages == [f"2 unfinished jobs were released; see {dump.path}"]


def test_only_its_owner_can_read_a_part_or_the_file(tmp_path: Path) -> None:
    dump = UnfinishedJobsDump(str(tmp_path), "web-3:7")
    before = os.umask(0)
    try:
        for step in (lambda: dump.add("8", unfinished("a")), dump.merge):
            step()
            (file,) = tmp_path.iterdir()
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_without_a_folder_the_log_has_it(caplog: pytest.LogCaptureFixture) -> None:
    for folder in (None, ""):
        dump = UnfinishedJobsDump(folder, "web-3:7")
        dump.add("8", unfinished("a", started=True, ran_seconds=2.5, data="secret"))
        dump.add("9", unfinished(*map(str, range(LOGGED + 3)), started=False))
        dump.merge()
        first, second = caplog.messages
        assert first == "1 unfinished jobs: a (shop.pay, ran 2.5 s)"
        assert second.startswith("23 unfinished jobs: 0 (shop.pay), 1 (shop.pay), ")
        assert second.endswith("19 (shop.pay), and 3 more")
        assert dump.where == "this log"
        caplog.clear()


def test_a_folder_that_cannot_be_written_to_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for folder in (tmp_path / "none", Path(__file__), Path("/proc/self")):
        assert problem(str(folder))
        dump = UnfinishedJobsDump(str(folder), "web-3:7")
        dump.add("8", unfinished("a"))
        dump.merge()
        assert {record.levelname for record in caplog.records} == {"WARNING"}
        why, jobs = caplog.messages
        assert why.startswith("No list of unfinished jobs is written: ")
        assert jobs == "1 unfinished jobs: a (shop.pay)"
        caplog.clear()
    assert problem(str(tmp_path)) is None
    assert list(tmp_path.iterdir()) == []


NO_PARTS: dict[str, bytes] = {
    "cut off": b'[{"id": "c", "job_ty',
    "empty": b"",
    "no text": b"\xff\xfe\x00",
    "no list": b'{"id": "c"}',
    "no jobs": b"[1, null]",
    "no ids": b'[{"id": 7}]',
    "deep": b"[" * 100_000,
}


def test_a_part_that_cannot_be_read_is_left_and_the_others_are_merged(
    dump: UnfinishedJobsDump, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for content in NO_PARTS.values():
        bad = beside(dump, ".9.part")
        bad.write_bytes(content)
        dump.add("8", unfinished("a"))
        dump.merge()
        assert set(listed(tmp_path)) == {"a"}
        assert sorted(tmp_path.glob("*.part")) == [bad]
        assert caplog.messages[0].startswith(
            f"{bad} is not a list of jobs, and is left alone: "
        )
        caplog.clear()


def test_what_others_put_into_the_folder_is_neither_read_nor_written_to(
    dump: UnfinishedJobsDump, tmp_path: Path
) -> None:
    """To read a pipe would be to wait for ever."""
    os.mkfifo(beside(dump, ".9.part"))
    theirs = tmp_path / "theirs"
    theirs.write_text(json.dumps(unfinished("b")))
    beside(dump, ".10.part").symlink_to(theirs)
    if os.geteuid() == 0:
        foreign = beside(dump, ".11.part")
        foreign.write_text(json.dumps(unfinished("c")))
        os.chown(foreign, 65_534, 65_534)
    for suffix in (".12.part", ".12.part.unfinished"):
        beside(dump, suffix).symlink_to(theirs)
    dump.add("12", unfinished("d"))
    beside(dump).symlink_to(theirs)
    dump.merge()
    assert theirs.read_text() == json.dumps(unfinished("b"))
    assert set(listed(tmp_path)) == {"a"}


def test_a_full_disk_leaves_no_half_file(
    dump: UnfinishedJobsDump,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def full(path: Path, to: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    dump.add("9", unfinished("b"))
    dump.merge()
    assert [file.suffix for file in tmp_path.iterdir()] == [".part"]
    assert "No list of unfinished jobs is written: " in caplog.messages[0]
    assert caplog.messages[1] == "1 unfinished jobs: b (shop.pay)"
    assert "The lists of 1 unfinished jobs stay in parts: " in caplog.messages[2]
