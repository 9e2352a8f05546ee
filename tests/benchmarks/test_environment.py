"""The environment of the benchmarks has the peers and what the project needs itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import environment


def test_it_is_made_of_the_peers_and_the_project_and_made_anew_when_either_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed: list[list[str]] = []
    project = tmp_path / "pyproject.toml"
    project.write_text("dependencies = []")

    def run(command: list[Any], **options: Any) -> None:
        installed.append([str(word) for word in command])

    def create(folder: Path, **options: Any) -> None:
        folder.mkdir(exist_ok=True)

    monkeypatch.setattr(environment, "VENV", tmp_path / "venv")
    monkeypatch.setattr(environment, "PROJECT", project)
    monkeypatch.setattr(environment, "OLDEST", (3, 11))
    monkeypatch.setattr(environment, "_make_node", lambda: None)
    monkeypatch.setattr(environment.subprocess, "run", run)
    monkeypatch.setattr(environment.venv, "create", create)
    monkeypatch.setattr(environment.os, "execv", lambda *arguments: None)

    environment.enter([])
    environment.enter([])
    assert len(installed) == 1
    assert installed[0][-4:] == [
        *("-r", str(environment.REQUIREMENTS)),
        *("-e", str(environment.ROOT)),
    ]
    project.write_text("dependencies = ['cronsim']")
    environment.enter([])
    assert len(installed) == 2
