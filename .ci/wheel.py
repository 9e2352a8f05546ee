"""``python .ci/wheel.py dist``: install the wheel there by itself, and try it.

It must hold every file of the package, say where its source, documentation and issues
are, and work in a fresh virtual environment, far from the checkout, on an empty
database.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from email.message import Message
from email.parser import Parser
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "django_jobqueue"
URLS = {"Source", "Documentation", "Issues", "Changelog"}
sys.path.insert(0, str(ROOT))

from testproject.postgres import Server, folder_for  # noqa: E402


def main(folder: Path) -> int:
    """Look into the only wheel of a folder, install it, use it; 0 if it works."""
    (wheel,) = folder.resolve().glob("*.whl")
    _compare(_in_checkout(), _in_wheel(wheel))
    _check_metadata(_metadata(wheel))
    with TemporaryDirectory() as made:
        python = _environment(Path(made) / "venv", wheel)
        server = Server(folder_for("pg", Path(made))).start()
        try:
            return subprocess.run(
                [python, "-I", ROOT / ".ci" / "installed.py"],
                cwd=made,
                env={**os.environ, "DATABASE_HOST": server.host},
            ).returncode
        finally:
            server.stop()


def _in_checkout() -> set[str]:
    files = (path for path in (ROOT / PACKAGE).rglob("*") if path.is_file())
    return {str(path.relative_to(ROOT)) for path in files if path.suffix != ".pyc"}


def _in_wheel(wheel: Path) -> set[str]:
    with ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if name.startswith(f"{PACKAGE}/")}


def _compare(wanted: set[str], found: set[str]) -> None:
    for problem, names in (("lacks", wanted - found), ("has besides", found - wanted)):
        if names:
            sys.exit(f"The wheel {problem} {', '.join(sorted(names))}.")
    print(f"The wheel has the {len(found)} files of the package.")


def _metadata(wheel: Path) -> Message:
    with ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def _check_metadata(metadata: Message) -> None:
    """The page of a package index leads to everything that the README promises."""
    urls = {line.partition(",")[0] for line in metadata.get_all("Project-URL", [])}
    if urls != URLS:
        sys.exit(f"The wheel's links are {sorted(urls)}, not {sorted(URLS)}.")
    relative = re.findall(r"\]\((?!https://)[^)]*\)", str(metadata.get_payload()))
    if relative:
        sys.exit(f"The wheel's description has relative links: {relative}.")


def _environment(folder: Path, wheel: Path) -> Path:
    """A fresh virtual environment with the wheel; returns its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, wheel, "psycopg[binary]"], check=True)
    return python


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
