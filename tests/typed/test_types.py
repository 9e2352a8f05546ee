"""A wrong argument of an enqueue is an error in the editor: mypy and pyright find it.

``make types`` runs this. mypy is in the extra ``lint``. Pyright is tried where it is
installed: its package on PyPI downloads the checker itself when it is first run.
``basedpyright`` is the same checker with all that it needs in its wheel.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.commands import ROOT

pytestmark = [pytest.mark.slow("make types runs it"), pytest.mark.processes]

CALLS = Path(__file__).with_name("calls.py")


def marked() -> set[int]:
    lines = enumerate(CALLS.read_text().splitlines(), 1)
    return {number for number, line in lines if line.endswith("# wrong")}


def said(*words: str) -> str:
    """What a checker says, which fails as there are errors."""
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_mypy_finds_what_is_wrong_and_nothing_else() -> None:
    pytest.importorskip("mypy", reason="needs mypy")
    pytest.importorskip("mypy_django_plugin", reason="needs django-stubs")
    output = said("mypy", str(CALLS))
    errors = re.findall(r"^tests/typed/calls\.py:(\d+): error: ", output, re.MULTILINE)
    assert {int(line) for line in errors} == marked(), output


@pytest.mark.parametrize("checker", ["pyright", "basedpyright"])
def test_pyright_finds_what_is_wrong_and_nothing_else(
    checker: str, tmp_path: Path
) -> None:
    if find_spec(checker) is None:
        pytest.skip(f"needs {checker}")
    settings: dict[str, object] = {
        "include": [os.path.relpath(CALLS, tmp_path)],
        "extraPaths": [str(ROOT)],
        "pythonVersion": "3.11",
        "typeCheckingMode": "standard",
    }
    config = tmp_path / "pyrightconfig.json"
    config.write_text(json.dumps(settings))
    flags = ("--outputjson", "--pythonpath", sys.executable, "-p", str(config))
    output = said(checker, *flags)
    found = json.loads(output)["generalDiagnostics"]
    wrong = [one["range"]["start"] for one in found if one["severity"] == "error"]
    assert {start["line"] + 1 for start in wrong} == marked(), output
