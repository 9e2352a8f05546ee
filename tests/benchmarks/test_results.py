"""What a run came to, written and read again."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.figures import Summary, number, percentile
from benchmarks.results import Results
from tests.benchmarks.made import add, results
from tests.support.tables import differing


def test_what_is_written_is_read_again_and_an_entry_is_a_line(tmp_path: Path) -> None:
    written = results()
    add(written, "drain/one", "pgqueuer", {"jobs_per_s": 2.5}, {"jobs_per_s": None})
    add(written, "drain/one", "django_jobqueue", {"jobs_per_s": 5})
    written.write(tmp_path / "run.json")
    assert Results.read(tmp_path / "run.json") == written
    lines = (tmp_path / "run.json").read_text().splitlines()
    assert sum('"pgqueuer"' in line for line in lines) == 2


def test_a_summary_and_a_ratio_need_rounds_that_reached_their_end() -> None:
    found = results()
    add(found, "drain/one", "a", {"x": 1}, {"x": 9}, {"x": 2})
    add(found, "drain/one", "b", {"x": 4})
    add(found, "drain/one", "zero", {"x": 0})
    add(found, "crash/host", "a", {"seconds": 1.0}, {"seconds": None})
    assert found.summary("drain/one", "a", "x") == Summary(2, 1, 9)
    assert found.summary("crash/host", "a", "seconds") is None
    one = ("drain/one", "b", "x")
    assert found.ratio(one, ("drain/one", "a", "x")) == 2
    assert found.ratio(one, ("drain/one", "zero", "x")) is None
    assert found.ratio(one, ("drain/one", "c", "x")) is None


def test_a_percentile_is_of_a_share_and_a_figure_has_three_digits() -> None:
    hundred = [(1, 1), (50, 50), (99, 99), (99.5, 100), (100, 100), (0, 1)]
    assert differing(hundred, partial(percentile, range(100, 0, -1))) == []
    assert percentile([7.0], 50) == percentile([7.0], 99) == 7.0
    figures = [
        *((0, "0"), (0.0, "0"), (0.08437, "0.0844"), (1.996, "2.00"), (523.4, "523")),
        *((12_345.6, "12,300"), (50_000, "50,000"), (4.0, "4"), (-2.218, "-2.22")),
    ]
    assert differing(figures, number) == []


def test_what_was_not_asked_to_its_end_is_forgotten() -> None:
    found = results()
    add(found, "drain/one", "a", {"x": 1})
    add(found, "pickup/idle", "a", {"x": 1})
    found.failed = ["drain/two 1 a", "pickup/idle 2 a"]
    found.finished = ["drain"]
    found.forget_unfinished()
    assert [entry.question for entry in found.entries] == ["drain"]
    assert found.failed == ["drain/two 1 a"]
