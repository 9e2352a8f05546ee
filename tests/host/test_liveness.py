"""How runworkers tells systemd, a heartbeat file and a pid file how it is."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from django_jobqueue import operations
from django_jobqueue.host.host_status import HostStatus
from django_jobqueue.host.liveness import BEAT, AlreadyRunning, Liveness, pid_file
from django_jobqueue.models import Host
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

Run = Callable[..., RunWorkers]

READY = HostStatus(is_ready=True, is_stopping=False, workers=2, jobs=3)
NOT_READY = HostStatus(is_ready=False, is_stopping=False, workers=0, jobs=0)
RESTARTING = HostStatus(
    is_ready=True, is_stopping=True, is_restarting=True, workers=2, jobs=1
)
STOPPING = HostStatus(is_ready=True, is_stopping=True, workers=2, jobs=1)


class Systemd:
    """The end of a notification socket that listens."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address.replace("@", "\0", 1))
        self._socket.setblocking(False)
        self.heard: list[str] = []

    def lines(self) -> list[str]:
        while True:
            try:
                self.heard += self._socket.recv(4096).decode().splitlines()
            except BlockingIOError:
                return self.heard

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Systemd]:
    made = Systemd(f"@jobqueue-{os.getpid()}-{tmp_path.name}")
    yield made
    made.close()


@pytest.fixture
def of_file(tmp_path: Path) -> Iterator[Systemd]:
    made = Systemd(os.path.relpath(tmp_path / "s"))  # the path is too long
    yield made
    made.close()


def liveness(**environment: str) -> Liveness:
    return Liveness(heartbeat_file=None, grace=30.0, environment=environment)


def test_systemd_hears_what_has_changed(systemd: Systemd, of_file: Systemd) -> None:
    for each in (systemd, of_file):
        one = liveness(NOTIFY_SOCKET=each.address)
        for status in (NOT_READY, READY, READY, STOPPING, STOPPING):
            one.notify(lambda status=status: status)
        assert each.lines() == [
            "STATUS=not ready: 0 worker processes, 0 jobs",
            "READY=1",
            "STATUS=running: 2 worker processes, 3 jobs",
            "STOPPING=1",
            "EXTEND_TIMEOUT_USEC=40000000",
            "STATUS=stopping: 2 worker processes, 1 jobs",
        ]


def test_systemd_does_not_take_a_restart_for_a_stop(systemd: Systemd) -> None:
    one = liveness(NOTIFY_SOCKET=systemd.address, WATCHDOG_USEC="4000000")
    for status in (READY, RESTARTING, RESTARTING):
        one.notify(lambda status=status: status)
    one.restart()
    lines = [line for line in systemd.lines() if not line.startswith("MONOTONIC_USEC=")]
    assert lines[3:] == [
        "WATCHDOG=1",
        "RELOADING=1",
        "STATUS=restarting: 2 worker processes, 1 jobs",
        "WATCHDOG=1",
        "WATCHDOG=1",
    ]
    one.notify(lambda: STOPPING)  # somebody wants it to stop after all
    assert "STOPPING=1" in systemd.lines()


def test_a_watchdog_is_fed_twice_as_often_as_it_bites(systemd: Systemd) -> None:
    one = liveness(NOTIFY_SOCKET=systemd.address, WATCHDOG_USEC="4000000")
    assert one.longest_pause == 2.0
    one.notify(lambda: READY)
    one.notify(lambda: READY)
    assert systemd.lines().count("WATCHDOG=1") == 2
    # That of another process is not fed.
    other = {"WATCHDOG_USEC": "4000000", "WATCHDOG_PID": "1"}
    liveness(NOTIFY_SOCKET=systemd.address, **other).notify(lambda: READY)
    assert systemd.lines().count("WATCHDOG=1") == 2


@pytest.mark.parametrize(
    "environment",
    [{}, {"WATCHDOG_USEC": "4000000"}, {"NOTIFY_SOCKET": "/nowhere/notify"}],
)
def test_without_systemd_nothing_is_watched(environment: dict[str, str]) -> None:
    one = liveness(**environment)
    one.notify(lambda: READY)
    assert one.longest_pause is None


def test_programs_of_handlers_do_not_know_the_socket() -> None:
    environment = {
        "NOTIFY_SOCKET": "/nowhere/notify",
        "WATCHDOG_USEC": "1",
        "WATCHDOG_PID": "1",
        "HOME": "/root",
    }
    Liveness(heartbeat_file=None, grace=1.0, environment=environment)
    assert environment == {"HOME": "/root"}


def test_a_heartbeat_is_a_file_that_ends_with_the_supervisor(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "beat"
    one = Liveness(heartbeat_file=str(path), grace=1.0, environment={})
    assert one.longest_pause == BEAT
    one.notify(lambda: READY)
    assert path.exists()
    one.end()
    assert not path.exists()

    missing = str(tmp_path / "missing" / "beat")
    one = Liveness(heartbeat_file=missing, grace=1.0, environment={})
    one.notify(lambda: READY)
    one.notify(lambda: READY)
    (record,) = caplog.records
    assert "heartbeat file cannot be written" in record.getMessage()


def test_a_pid_file_is_there_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "jobs.pid"
    path.write_text("4711\n")  # of one that was killed
    with pid_file(str(path)):
        assert path.read_text() == f"{os.getpid()}\n"
    assert not path.exists()
    with pid_file(None):
        pass


def test_only_one_may_hold_a_pid_file_until_it_is_killed(tmp_path: Path) -> None:
    path = str(tmp_path / "pid")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # a lock is of a process, so another one has to hold it
        try:
            with pid_file(path):
                os.write(writer, b"x")
                signal.pause()
        finally:
            os._exit(0)
    try:
        os.read(reader, 1)
        with (
            pytest.raises(AlreadyRunning, match=f"Process {child} runs already"),
            pid_file(path),
        ):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)
        os.close(writer)
    with pid_file(path):
        assert Path(path).read_text() == f"{os.getpid()}\n"


def is_fed(systemd: Systemd) -> None:
    fed = systemd.lines().count("WATCHDOG=1")
    eventually(lambda: systemd.lines().count("WATCHDOG=1") > fed + 1)


@pytest.mark.slow("loads a program twice more, as in tests/crashes/test_host_orders.py")
@pytest.mark.processes
def test_systemd_hears_of_a_real_restart(runworkers: Run, systemd: Systemd) -> None:
    run = runworkers(NOTIFY_SOCKET=systemd.address, WATCHDOG_USEC="1000000")
    eventually(lambda: "READY=1" in systemd.lines(), what=lambda: run.output)
    operations.ask_hosts(Host.objects.get().pk, "restart")
    eventually(
        lambda: systemd.lines().count("READY=1") == 2,
        within=60,
        what=lambda: run.output,
    )
    assert systemd.lines().index("READY=1") < systemd.lines().index("RELOADING=1")
    assert "STOPPING=1" not in systemd.lines()
    is_fed(systemd)
    assert run.stop() == 0
    assert systemd.lines().count("STOPPING=1") == 1


@pytest.mark.processes
def test_runworkers_feeds_a_watchdog_and_keeps_a_heartbeat_and_a_pid_file(
    runworkers: Run, systemd: Systemd, tmp_path: Path
) -> None:
    beat, pid = tmp_path / "beat", tmp_path / "pid"
    flags = ("--heartbeat-file", str(beat), "--pidfile", str(pid))
    run = runworkers(*flags, NOTIFY_SOCKET=systemd.address, WATCHDOG_USEC="1000000")
    eventually(lambda: "READY=1" in systemd.lines(), what=lambda: run.output)
    is_fed(systemd)
    eventually(beat.exists)
    assert pid.read_text() == f"{run.process.pid}\n"

    second = runworkers(*flags)
    third = runworkers("--pidfile", str(tmp_path / "missing" / "pid"))
    assert second.wait() == third.wait() == 1
    assert f"Process {run.process.pid} runs already ({pid})." in second.output
    assert "--pidfile: " in third.output
    assert "No such file or directory" in third.output

    assert run.stop() == 0
    assert systemd.lines().count("STOPPING=1") == 1
    assert not beat.exists()
    assert not pid.exists()


@pytest.mark.processes
def test_a_host_that_stands_by_is_ready(runworkers: Run, systemd: Systemd) -> None:
    """Its start would time out, as it may wait for days."""
    flags = ("--standby", "main", "--threads", "1")
    runworkers(*flags).started()
    waiting = runworkers(*flags, NOTIFY_SOCKET=systemd.address)
    eventually(lambda: "READY=1" in systemd.lines(), what=lambda: waiting.output)
    eventually(lambda: "Standing by" in waiting.output, what=lambda: waiting.output)
    assert waiting.workers() == []
