"""The web server of the demo."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final
from urllib.parse import urlsplit

from testproject.demo.browser import Browser, Refused
from testproject.demo.processes import Died, Process, pause, running

HOST: Final = "127.0.0.1"
START: Final = 30.0  # seconds


def free_port(wanted: int) -> int:
    """This port, or another one if it is taken."""
    for port in (wanted, 0):
        with closing(socket.socket()) as probe:
            # As the web server does; else a port that was used a minute ago is taken.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise Died("There is no free port.")


@contextmanager
def web_server(shop: str) -> Iterator[Process]:
    """Serve the shop at this address. Raises Died if it does not start."""
    address = urlsplit(shop).netloc
    with running("web", "runserver", "--noreload", address) as web:
        deadline = time.monotonic() + START
        browser = Browser(shop)
        while not _answers(browser):
            pause(0.1, web)
            if time.monotonic() > deadline:
                raise Died(f"The shop does not answer at {shop}; see {web.log}")
        yield web


def _answers(browser: Browser) -> bool:
    try:
        browser.get("/")
    except Refused:
        return False
    return True
