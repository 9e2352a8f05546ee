"""What a run came to, written and read again."""

from __future__ import annotations

from pathlib import Path

from benchmarks.figures import Summary
from benchmarks.results import Results
from tests.benchmarks.made import add, results


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    written = results()
    add(written, "drain/one", "pgqueuer", {"jobs_per_s": 2.5}, {"jobs_per_s": None})
    add(written, "drain/one", "django_jobqueue", {"jobs_per_s": 5})
    written.write(tmp_path / "run.json")
    assert Results.read(tmp_path / "run.json") == written


def test_an_entry_is_a_line_of_the_file(tmp_path: Path) -> None:
    written = results()
    add(written, "drain/one", "pgqueuer", {"jobs": 1}, {"jobs": 2}, {"jobs": 3})
    written.write(tmp_path / "run.json")
    lines = (tmp_path / "run.json").read_text().splitlines()
    assert sum('"pgqueuer"' in line for line in lines) == 3


def test_a_summary_is_of_all_rounds() -> None:
    found = results()
    add(found, "drain/one", "a", {"x": 1}, {"x": 9}, {"x": 2})
    add(found, "drain/two", "a", {"x": 100})
    assert found.summary("drain/one", "a", "x") == Summary(2, 1, 9)
    assert found.median("drain/one", "a", "x") == 2


def test_there_is_no_summary_of_what_was_not_measured_or_not_reached() -> None:
    found = results()
    add(found, "crash/host", "a", {"seconds": 1.0}, {"seconds": None})
    assert found.summary("crash/host", "a", "seconds") is None
    assert found.summary("crash/host", "a", "jobs") is None
    assert found.summary("crash/host", "b", "seconds") is None


def test_a_ratio_is_one_of_medians() -> None:
    found = results()
    add(found, "drain/one", "a", {"x": 4}, {"x": 6}, {"x": 80})
    add(found, "drain/one", "b", {"x": 3})
    add(found, "drain/one", "zero", {"x": 0})
    one = ("drain/one", "a", "x")
    assert found.ratio(one, ("drain/one", "b", "x")) == 2
    assert found.ratio(one, ("drain/one", "zero", "x")) is None
    assert found.ratio(one, ("drain/one", "c", "x")) is None


def test_what_was_not_asked_to_its_end_is_forgotten() -> None:
    found = results()
    add(found, "drain/one", "a", {"x": 1})
    add(found, "pickup/idle", "a", {"x": 1})
    found.failed = ["drain/two 1 a", "pickup/idle 2 a"]
    found.finished = ["drain"]
    found.forget_unfinished()
    assert [entry.question for entry in found.entries] == ["drain"]
    assert found.failed == ["drain/two 1 a"]
