"""The parts of the demo that are not the shop's: ports, processes, migrations."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path

import pytest
from django.core.management import call_command

from testproject.demo import processes
from testproject.demo.browser import Browser, Refused
from testproject.demo.processes import Died, pause, running
from testproject.demo.web import HOST, free_port


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the demo's processes write their logs, for this test."""
    monkeypatch.setattr(processes, "FILES", tmp_path)
    return tmp_path


def test_a_port_that_is_taken_is_left_alone() -> None:
    with closing(socket.create_server((HOST, 0))) as other:
        taken = other.getsockname()[1]
        found = free_port(taken)
    assert found != taken
    assert free_port(found) == found


@pytest.mark.dear
def test_a_process_that_ends_badly_is_told_with_the_end_of_its_log() -> None:
    """Whether it is watched, or waited for."""
    with running("web", "frobnicate") as web:
        for look in (lambda: pause(60, web), lambda: web.wait(within=60)):
            with pytest.raises(Died) as died:
                look()
            assert str(died.value).startswith("web ended with 1; the end of ")
            assert "Unknown command: 'frobnicate'" in str(died.value)


def test_a_process_is_stopped_at_the_end(files: Path) -> None:
    port = free_port(0)
    with running("web", "runserver", "--noreload", f"{HOST}:{port}") as web:
        web.check()
    with pytest.raises(Died, match="web ended with"):
        web.check()


def test_a_shop_that_is_closed_refuses_its_customers() -> None:
    with pytest.raises(Refused, match="does not answer"):
        Browser(f"http://{HOST}:{free_port(0)}").get("/")


def test_no_change_of_the_shops_models_lacks_its_migration(
    transactional_db: None,
) -> None:
    call_command("makemigrations", "shop", check=True, dry_run=True, verbosity=0)
