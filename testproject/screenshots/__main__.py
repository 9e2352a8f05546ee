"""``python -m testproject.screenshots [FOLDER]``: take them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import django
import psycopg

from testproject.demo.database import database
from testproject.demo.processes import FILES, ROOT
from testproject.demo.web import HOST, free_port, web_server

NAME = "screenshots"  # of the database, which is made anew each time
SETTINGS = "testproject.screenshots.settings"


def main() -> None:
    """Build the scene, serve it, take every page."""
    parser = argparse.ArgumentParser(prog="python -m testproject.screenshots")
    parser.add_argument("folder", nargs="?", type=Path, default=_docs())
    parser.add_argument("--settings", default=SETTINGS, help=f"({SETTINGS})")
    parser.add_argument("--only", default="", help="pages whose name has this")
    parser.add_argument(
        "--every-look",
        action="store_true",
        help="also wide, dark on phones, and pages that are looked at and not kept",
    )
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    os.environ["DJANGO_SETTINGS_MODULE"] = options.settings
    with database(FILES), _fresh_database():
        django.setup()
        _take(options.folder, options.only, every_look=options.every_look)


def _docs() -> Path:
    return ROOT / "docs" / "_static" / "screenshots"


@contextmanager
def _fresh_database() -> Iterator[None]:
    """A database of our own on the same server."""
    url = urlsplit(os.environ["DATABASE_URL"])
    with psycopg.connect(urlunsplit(url), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {NAME}")
    os.environ["DATABASE_URL"] = urlunsplit(url._replace(path=f"/{NAME}"))
    yield
    os.environ["DATABASE_URL"] = urlunsplit(url)


def _take(folder: Path, only: str, *, every_look: bool) -> None:
    # These import models, which need Django to be set up.
    from testproject.screenshots.camera import LOOKS, OTHER_LOOKS, camera
    from testproject.screenshots.pages import addresses, other_addresses, prepare
    from testproject.screenshots.scene import LIVE

    scene, session = prepare()
    pages = addresses(scene) | (other_addresses(scene) if every_look else {})
    found = {name: at for name, at in pages.items() if only in name}
    site = f"http://{HOST}:{free_port(8_790)}"
    looks = (*LOOKS, *OTHER_LOOKS) if every_look else LOOKS
    total = 0
    cookie = {"name": "sessionid", "value": session, "url": site}
    with (
        web_server(site),
        psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection,
        camera(site, cookie, lambda: connection.execute(LIVE), looks) as taking,
    ):
        for name, address in found.items():
            total += taking.take(address, name, folder)
            print(f"{name:24} {address}", flush=True)
    print(f"{len(found)} pages, {total / 1e6:.1f} MB in {folder}")


if __name__ == "__main__":
    main()
