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

CASES = [
    pytest.param(question, case, id=f"{question.name}/{case.name}")
    for question in QUESTIONS
    for case in question.cases
]
ALWAYS = ("drain/one", "pickup/idle", "enqueue/single")
RUN = [
    case
    if case.id in ALWAYS
    else pytest.param(
        *case.values, id=case.id, marks=pytest.mark.slow("runs a benchmark")
    )
    for case in CASES
]


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


def test_every_file_of_a_question_is_registered_under_its_name() -> None:
    assert {question.name for question in QUESTIONS} == files_of(questions.__file__)


def test_every_file_of_a_system_is_registered() -> None:
    names = {system.name.replace("-", "_") for system in ALL}
    assert names == files_of(systems.__file__)
    assert ALL[0] is OURS


def test_the_index_has_every_question_and_every_script() -> None:
    index = (ROOT / "benchmarks" / "README.md").read_text()
    for question in QUESTIONS:
        assert f"| `{question.name}` | `questions/{question.name}.py` |" in index
    assert "`python -m benchmarks.admin_lists`" in index


def test_every_peer_is_pinned() -> None:
    lines = (ROOT / "benchmarks" / "requirements.txt").read_text().splitlines()
    wanted = [line for line in lines if line and not line.startswith("#")]
    assert all("==" in line for line in wanted)
    node = json.loads((ROOT / "benchmarks" / "node" / "package.json").read_text())
    assert all(re.fullmatch(r"[\d.]+", v) for v in node["dependencies"].values())
    pinned = {re.split(r"[\[=]", line)[0] for line in wanted} | set(
        node["dependencies"]
    )
    assert {system.distribution for system in ALL if system is not OURS} <= pinned


def test_every_system_on_node_has_its_script() -> None:
    scripts = {path.stem for path in (ROOT / "benchmarks" / "node").glob("*.mjs")}
    assert {system.app for system in ALL if system.is_node} == scripts - {"common"}


@pytest.mark.parametrize("flag", ["--profile=drain", "--profile=drain/three"])
def test_a_case_that_is_not_there_is_not_profiled(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([flag, "--json=run.json"])
    assert "there is no case" in capsys.readouterr().err


def test_a_profile_is_written_beside_a_json_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["--profile=drain/one"])
    assert "--profile needs --json" in capsys.readouterr().err


@pytest.mark.parametrize(("question", "case"), CASES)
def test_a_case_can_be_measured_and_shown(question: Question, case: Case) -> None:
    assert (case.measure is None) != (case.together is None)
    assert OURS in case.systems
    keys = [column.key for column in case.columns]
    assert len(set(keys)) == len(keys)
    assert case.leads in keys


def test_a_question_that_is_not_there_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "drain,pikup"])
    assert "there is no question 'pikup'" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--quick", "--only=drain", "--systems=pgqueuer"])
def test_the_page_is_not_written_from_a_part_of_a_run(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--page", flag])
    assert "--page needs a whole run" in capsys.readouterr().err


def test_a_run_that_never_was_cannot_be_gone_on_with(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit):
        main(["--resume", f"--json={tmp_path / 'run.json'}"])
    assert "of a run that was stopped" in capsys.readouterr().err


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
