"""A new column of a job is one line of its declaration."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.commands import ROOT, worker_environment


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_a_column_that_is_declared_goes_wherever_its_job_goes() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.store.made_up_column"],
        cwd=ROOT,
        env={**worker_environment(), "DJANGO_SETTINGS_MODULE": "tests.settings"},
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    assert done.stdout == "done\n"
