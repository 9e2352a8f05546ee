"""The environments of the benchmarks: the project beside the pinned peers.

This file and ``__main__`` need nothing but the standard library.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
VENV: Final = ROOT / ".venv-bench"
REQUIREMENTS: Final = Path(__file__).with_name("requirements.txt")
PROJECT: Final = ROOT / "pyproject.toml"  # for what it needs itself
NODE: Final = ROOT / ".cache" / "bench-node"  # what runs on Node, and a Node for it
SCRIPTS: Final = Path(__file__).with_name("node")
OLDEST: Final = (3, 12)  # what Django 6.1 needs


def enter(arguments: list[str], module: str = "benchmarks") -> None:
    """Go on with these arguments in the environment, which is made if need be.

    Returns if this is it. Raises CalledProcessError if it cannot be made.
    """
    if Path(sys.prefix).resolve() == VENV:
        return
    if sys.version_info < OLDEST:
        sys.exit(
            "The benchmarks need Python 3.12 or newer, for the peers' Django 6.1; "
            f"this is {sys.version_info.major}.{sys.version_info.minor}."
        )
    python = VENV / "bin" / "python"
    recipe = "\n".join((sys.version, REQUIREMENTS.read_text(), PROJECT.read_text()))
    made = VENV / ".made"
    if not made.exists() or made.read_text() != recipe:
        _make(python)
        made.write_text(recipe)
    _make_node()
    os.execv(python, [str(python), "-m", module, *arguments])


def _make(python: Path) -> None:
    if VENV.is_symlink():  # what it leads to would be emptied
        sys.exit(f"{VENV.name} is a link. Delete it: the benchmarks make their own.")
    print("Installing the peers into .venv-bench …", flush=True)
    venv.create(VENV, clear=True, with_pip=True)
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    what = ["-r", REQUIREMENTS, "-e", ROOT]
    subprocess.run([python, *install, *what], check=True)


def _make_node() -> None:
    """Install the peers that run on Node beside their scripts, if there is npm."""
    if shutil.which("npm") is None:
        return
    made = NODE / ".made"
    recipe = (SCRIPTS / "package.json").read_text()
    if not made.exists() or made.read_text() != recipe:
        print("Installing the peers that run on Node …", flush=True)
        shutil.rmtree(NODE, ignore_errors=True)
    shutil.copytree(SCRIPTS, NODE, dirs_exist_ok=True)
    if not made.exists():
        quietly = ["--silent", "--no-audit", "--no-fund", "--no-update-notifier"]
        if subprocess.run(["npm", "install", *quietly], cwd=NODE).returncode:
            print("npm cannot install them; they are left out.", flush=True)
        else:
            made.write_text(recipe)
