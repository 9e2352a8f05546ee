"""The tables and the page that are written from results."""

from __future__ import annotations

import json
import re

from benchmarks.command import PAGE, RESULTS
from benchmarks.page import page, tables
from benchmarks.questions import QUESTIONS, crash, drain
from benchmarks.results import Results
from benchmarks.tables import table
from tests.benchmarks.made import add, results

HOST = crash.QUESTION.cases[1]
OURS, THEIRS = "django_jobqueue", "pgqueuer"
IN_BATCHES = "One process: at least graphile-worker in batches"


def compared(ours: float, theirs: float, name: str = THEIRS) -> Results:
    made = results()
    add(made, "drain/one", OURS, {"jobs_per_s": ours}, {"jobs_per_s": ours * 3})
    add(made, "drain/one", name, {"jobs_per_s": theirs, "jobs": 50_000})
    return made


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


def test_the_page_tells_where_we_are_not_first_and_what_we_did_not_reach() -> None:
    text = page(compared(1_000, 4_000, "graphile-worker"))
    assert (
        "| Draining a backlog, one process (jobs/s) | 2,000 | 4,000 (graphile-worker) "
        "| 2 × **worse** |"
    ) in text
    assert "\n| graphile-worker | 4,000 (0.500×) |\n" in text
    assert f"- **Draining a backlog. {IN_BATCHES}:** 0.500." in text
    text = page(compared(10_000, 4_000, "graphile-worker"))
    assert "worse**" not in text
    assert "Not reached:\n\nNothing.\n" in text
    assert IN_BATCHES not in text


def test_the_page_names_what_was_not_measured_and_what_is_not_held_to() -> None:
    made = compared(10_000, 4_000)
    made.left_out = {"pg-boss": "there is no npm here"}
    made.failed = ["drain/two 3 chancy"]
    text = page(made)
    assert f"{IN_BATCHES} | – | not measured |" in tables(made)
    assert "were not measured" in text
    assert "\n- pg-boss: there is no npm here.\n- failed: drain/two 3 chancy.\n" in text
    assert text.count("Not measured in this run.") == len(QUESTIONS) - 1
    made = compared(1_000, 4_000)
    assert "what we aim at" in tables(made)
    made.quick = True
    assert "what we aim at" not in tables(made)


def test_the_page_is_that_of_the_committed_results_which_name_no_place() -> None:
    found = Results.read(RESULTS)
    assert PAGE.read_text() == page(found)
    assert not found.quick
    assert {entry.question for entry in found.entries} == {q.name for q in QUESTIONS}
    head = json.loads(RESULTS.read_text())
    del head["entries"]
    assert not re.search(r"/(?:home|root|tmp|usr|work)\b", json.dumps(head))
