"""The tables and the page that are written from results."""

from __future__ import annotations

import json
import re

import pytest

from benchmarks.command import PAGE, RESULTS
from benchmarks.page import page, tables
from benchmarks.questions import QUESTIONS, crash, drain
from benchmarks.results import Results
from benchmarks.tables import in_words, table, times_better
from tests.benchmarks.made import add, results

ONE = drain.QUESTION.cases[0]
HOST = crash.QUESTION.cases[1]
OURS, THEIRS = "django_jobqueue", "pgqueuer"
IN_BATCHES = "One process: at least graphile-worker in batches"


def compared(ours: float, theirs: float, name: str = THEIRS) -> Results:
    """Results of a drain, beside this other system."""
    made = results()
    add(made, "drain/one", OURS, {"jobs_per_s": ours}, {"jobs_per_s": ours * 3})
    add(made, "drain/one", name, {"jobs_per_s": theirs, "jobs": 50_000})
    return made


def test_a_table_has_medians_ranges_and_how_many_times_better_we_are() -> None:
    rows = table(drain.QUESTION, ONE, compared(10_000, 4_000))
    assert [row.split(" | ") for row in (rows[0], *rows[2:])] == [
        ["| ", "jobs/s", "jobs", "starts/s", "worker CPU µs/job", "server CPU µs/job"]
        + ["transactions or commands/job", "django_jobqueue is |"],
        ["| django_jobqueue", "20,000 (10,000 … 30,000)", *"–" * 5, " |"],
        ["| pgqueuer", "4,000", "50,000", *"–" * 4, "5 × better |"],
    ]
    assert rows[1].count("---") == rows[0].count("|") - 1


def test_there_is_no_table_of_what_was_not_measured() -> None:
    assert table(drain.QUESTION, drain.QUESTION.cases[1], compared(1, 1)) == []


def test_what_did_not_come_in_time_is_said() -> None:
    made = results()
    add(made, "crash/host", OURS, {"seconds": 15.5, "jobs": 20, "again": 20})
    add(made, "crash/host", THEIRS, {"seconds": None}, {"seconds": 36.0})
    add(made, "crash/host", "procrastinate", {"seconds": None}, {"seconds": None})
    cells = {
        row.split(" | ")[0].strip("| "): row.split(" | ")[1:]
        for row in table(crash.QUESTION, HOST, made)
    }
    assert cells[THEIRS] == ["36; 1 × not in 60 s", "–", "–", " |"]
    assert cells["procrastinate"][0] == "not in 60 s"
    assert cells[OURS] == ["15.5", "20", "20", " |"]


def test_better_is_more_of_a_rate_and_less_of_a_time() -> None:
    made = compared(10_000, 4_000)
    add(made, "crash/host", OURS, {"seconds": 15.0})
    add(made, "crash/host", THEIRS, {"seconds": 45.0})
    pgqueuer = next(s for s in ONE.systems if s.name == THEIRS)
    assert times_better(drain.QUESTION, ONE, pgqueuer, made) == 5
    assert times_better(crash.QUESTION, HOST, pgqueuer, made) == 3


def test_what_was_not_reached_is_told_with_its_reason() -> None:
    aim = next(a for a in drain.QUESTION.aims if a.text.startswith("Two processes"))
    assert aim.reason
    made = compared(10_000, 4_000)  # 20,000 in the median
    add(made, "drain/two", OURS, {"jobs_per_s": 21_000})
    told = " ".join(page(made).split())
    assert f"- **Draining a backlog. {aim.text}:** 1.05. {aim.reason}" in told
    made.entries.pop()
    add(made, "drain/two", OURS, {"jobs_per_s": 30_000})
    assert aim.reason not in " ".join(page(made).split())


@pytest.mark.parametrize(
    ("times", "words"),
    [
        (2.5, "2.50 × better"),
        (0.4, "2.50 × worse"),
        (1.04, "about the same"),
        (0.96, "about the same"),
    ],
)
def test_how_many_times_in_words(times: float, words: str) -> None:
    assert in_words(times) == words


def test_the_page_tells_where_we_are_not_first_and_what_we_did_not_reach() -> None:
    text = page(compared(1_000, 4_000, "graphile-worker"))
    assert (
        "| Draining a backlog, one process (jobs/s) | 2,000 | 4,000 (graphile-worker) "
        "| 2 × **worse** |"
    ) in text
    assert "\n| graphile-worker | 4,000 (0.500×) |\n" in text
    assert f"- **Draining a backlog. {IN_BATCHES}:** 0.500." in text


def test_the_page_says_nothing_bad_where_there_is_nothing() -> None:
    text = page(compared(10_000, 4_000, "graphile-worker"))
    assert "worse**" not in text
    assert "Not reached:\n\nNothing.\n" in text
    assert IN_BATCHES not in text
    assert "1 of " in text


def test_the_page_names_what_was_not_measured_and_who_was_left_out() -> None:
    made = compared(10_000, 4_000)
    made.left_out = {"pg-boss": "there is no npm here"}
    made.failed = ["drain/two 3 chancy"]
    text = page(made)
    assert f"{IN_BATCHES} | – | not measured |" in tables(made)
    assert "were not measured" in text
    assert "\n- pg-boss: there is no npm here.\n- failed: drain/two 3 chancy.\n" in text
    assert text.count("Not measured in this run.") == len(QUESTIONS) - 1


def test_the_page_names_machine_versions_and_settings() -> None:
    text = page(results())
    for said in ("cores: 2", "PostgreSQL: 18.4", "Django: 6.1", "`fsync`: on"):
        assert said in text
    assert "- **pgqueuer:** `pgq run` on uvloop" in text
    assert "This run took 10 minutes." in text
    assert "$" not in re.sub(r"^\$ make .*$", "", text, flags=re.MULTILINE)


def test_a_quick_run_is_not_held_to_what_we_aim_at() -> None:
    made = compared(1_000, 4_000)
    assert "what we aim at" in tables(made)
    made.quick = True
    assert "what we aim at" not in tables(made)


def test_prose_is_wrapped_and_tables_are_not() -> None:
    lines = page(compared(1_000, 4_000)).splitlines()
    assert max(len(line) for line in lines if not line.startswith("|")) <= 120
    assert sum(line.startswith("| django_jobqueue |") for line in lines) == 1


def test_the_page_is_the_one_of_the_committed_results() -> None:
    if not RESULTS.exists():
        pytest.skip("no results are committed")
    assert PAGE.read_text() == page(Results.read(RESULTS))


def test_the_committed_results_are_whole() -> None:
    found = Results.read(RESULTS)
    assert not found.quick
    assert {entry.question for entry in found.entries} == {q.name for q in QUESTIONS}


def test_the_committed_results_name_no_place() -> None:
    if not RESULTS.exists():
        pytest.skip("no results are committed")
    head = json.loads(RESULTS.read_text())
    del head["entries"]
    assert not re.search(r"/(?:home|root|tmp|usr|work)\b", json.dumps(head))
