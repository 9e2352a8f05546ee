"""The questions are registered, indexed, and a tiny run of each of them works."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from benchmarks import questions, systems
from benchmarks.command import main
from benchmarks.questions import QUESTIONS
from benchmarks.questions.base import Case, Question
from benchmarks.server import running
from benchmarks.site import Site
from benchmarks.systems import ALL, OURS
from tests.support.commands import ROOT

TINY = 0.002  # of the jobs

CASES = [(question, case) for question in QUESTIONS for case in question.cases]
RUN = [pytest.param(*each, id=f"{each[0].name}/{each[1].name}") for each in CASES]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A durable server with nothing in it."""
    with tempfile.TemporaryDirectory(prefix="jq-") as name:
        folder = Path(name)
        with running(folder) as server:
            yield Site(server, folder, TINY)


def files_of(package: str) -> set[str]:
    """The names of the modules of a package that are one thing each."""
    found = {path.stem for path in Path(package).parent.glob("*.py")}
    return found - {"__init__", "base"}


def test_every_file_is_registered_and_every_peer_pinned() -> None:
    index = (ROOT / "benchmarks" / "README.md").read_text()
    assert {question.name for question in QUESTIONS} == files_of(questions.__file__)
    for question in QUESTIONS:
        assert f"| `{question.name}` | `questions/{question.name}.py` |" in index
    assert "`python -m benchmarks.admin_lists`" in index
    names = {system.name.replace("-", "_") for system in ALL}
    assert names == files_of(systems.__file__)
    assert ALL[0] is OURS
    scripts = {path.stem for path in (ROOT / "benchmarks" / "node").glob("*.mjs")}
    assert {system.app for system in ALL if system.is_node} == scripts - {"common"}
    lines = (ROOT / "benchmarks" / "requirements.txt").read_text().splitlines()
    wanted = [line for line in lines if line and not line.startswith("#")]
    assert all("==" in line for line in wanted)
    node = json.loads((ROOT / "benchmarks" / "node" / "package.json").read_text())
    assert all(re.fullmatch(r"[\d.]+", v) for v in node["dependencies"].values())
    pinned = {re.split(r"[\[=]", line)[0] for line in wanted} | set(
        node["dependencies"]
    )
    assert {system.distribution for system in ALL if system is not OURS} <= pinned


def test_a_case_can_be_measured_and_shown() -> None:
    for question, case in CASES:
        keys = [column.key for column in case.columns]
        is_right = (
            (case.measure is None) != (case.together is None),
            OURS in case.systems,
            len(set(keys)) == len(keys),
            case.leads in keys,
        )
        assert all(is_right), (question.name, case.name)


def test_a_run_that_cannot_be_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for command, said in (
        ("--profile=drain --json=run.json", "there is no case"),
        ("--profile=drain/three --json=run.json", "there is no case"),
        ("--profile=drain/one", "--profile needs --json"),
        ("--only drain,pikup", "there is no question 'pikup'"),
        ("--page --quick", "--page needs a whole run"),
        ("--page --only=drain", "--page needs a whole run"),
        ("--page --systems=pgqueuer", "--page needs a whole run"),
        (f"--resume --json={tmp_path}/run.json", "of a run that was stopped"),
    ):
        with pytest.raises(SystemExit):
            main(command.split())
        assert said in capsys.readouterr().err


@pytest.mark.slow("runs a benchmark")
@pytest.mark.processes
@pytest.mark.parametrize(("question", "case"), RUN)
def test_a_tiny_run_of_us_answers_the_question(
    question: Question, case: Case, site: Site
) -> None:
    if case.together is not None:
        values = case.together(site, [OURS])[OURS.name]
    else:
        assert case.measure is not None
        values = case.measure(site, OURS)
    assert set(values) == {column.key for column in case.columns}
    assert all(value is not None for value in values.values())
    assert values[case.leads] or question.name == "pickup"
    left = site.server.admin.execute(
        "SELECT datname FROM pg_database WHERE starts_with(datname, 'trial_')"
    ).fetchall()
    assert left == []
    assert list(site.folder.glob("trial_*")) == []
    assert "runworkers" not in " ".join(
        part
        for process in psutil.Process().children(recursive=True)
        for part in process.cmdline()
    )
