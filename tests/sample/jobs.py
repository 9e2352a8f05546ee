"""Handlers for tests. Those that must be seen from outside write lines to a file."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection

from django_jobqueue import (
    Cancel,
    Context,
    Fail,
    PerKey,
    Rate,
    Retry,
    Snooze,
    current_job,
    job,
    signals,
)


def note(journal: str, *words: object) -> None:
    append(journal, " ".join(map(str, [time.monotonic_ns(), os.getpid(), *words])))


def append(path: str, line: str) -> None:
    """One line, in one write, so that processes can share the file."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(descriptor, line.encode() + b"\n")
    finally:
        os.close(descriptor)


def timed_notes(journal: str | Path) -> list[tuple[int, list[str]]]:
    path = Path(journal)
    lines = path.read_text().splitlines() if path.exists() else []
    return [(int(at), words) for at, _, *words in map(str.split, lines)]


def notes(journal: str | Path) -> list[list[str]]:
    return [words for _, words in timed_notes(journal)]


def is_running(pid: int) -> bool:
    """Whether a process runs; one that nobody reaped does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


@job
def add(a: int, b: int = 0) -> int:
    """Return a sum."""
    return a + b


@job
def keep(a: Any, b: Any = None) -> None:
    """Take anything."""


@job
def keep_typed(
    text: str = "", perhaps: str | None = None, either: int | str = 0, number: int = 0
) -> None:
    """Take what fits."""


@job
async def aadd(a: int, b: int = 0) -> int:
    await asyncio.sleep(0)
    return a + b


@job
def write(journal: str, word: str = "ran", seconds: float = 0.0) -> None:
    note(journal, "start", word)
    if seconds:
        time.sleep(seconds)
    note(journal, "end", word)


write_once = job(name="tests.sample.write_once", delivery="at_most_once")(
    write.function
)
write_limited = job(name="tests.sample.write_limited", concurrency=2)(write.function)


@job
def write_slowly(journal: str, word: str = "ran") -> None:
    write.function(journal, word, seconds=0.05)


@job
async def awrite(journal: str, word: str = "ran", seconds: float = 0.0) -> None:
    note(journal, "start", word)
    await asyncio.sleep(seconds)
    note(journal, "end", word)


awrite_in_time = job(
    name="tests.sample.awrite_in_time", timeout=0.5, max_attempts=3, backoff="immediate"
)(awrite.function)


@job
def linger(journal: str, word: str = "ran") -> None:
    """Take a minute in the first attempt, and no time in the next ones."""
    is_first = ["start", word] not in notes(journal)
    note(journal, "start", word)
    if is_first:
        time.sleep(60)
    note(journal, "end", word)


linger_in_time = job(
    name="tests.sample.linger_in_time", timeout=1, max_attempts=3, backoff="immediate"
)(linger.function)


@job
def await_leave(journal: str, word: str = "ran") -> None:
    """Go on until the test gives leave to end."""
    note(journal, "start", word)
    while not Path(f"{journal}.{word}").exists():
        time.sleep(0.005)
    note(journal, "end", word)


def give_leave(journal: str, word: str = "ran") -> None:
    Path(f"{journal}.{word}").touch()


LEAKED: list[bytearray] = []


@job
def leak_memory(megabytes: int) -> None:
    LEAKED.append(bytearray(b"x") * (megabytes << 20))


@job(per_key=PerKey("key"))
def count_keyed(key: str = "none") -> None:
    """Takes its turn by key, and needs no arguments."""


@job(per_key=PerKey("key", concurrency=2))
def write_keyed(
    journal: str, key: str | int | None = "all", word: str = "ran", seconds: float = 0.0
) -> None:
    note(journal, "start", key, word)
    time.sleep(seconds)
    note(journal, "end", key, word)


@job(rate=Rate(1_000, per=1, weight="size"))
def write_weighed(journal: str = os.devnull, size: int = 1) -> None:
    note(journal, "start", size)


@job(atomic=True)
def write_atomic(journal: str, name: str, seconds: float = 0.0) -> str:
    from django.contrib.auth.models import Group

    Group.objects.create(name=name)
    note(journal, "wrote", name)
    time.sleep(seconds)
    return name


@job(max_attempts=3, backoff="immediate")
def fail(message: str = "no") -> None:
    raise ValueError(message)


THE_SAME = ValueError("the same instance")


@job(max_attempts=3, backoff="immediate")
def fail_with_the_same() -> None:
    """Raise one instance in each attempt, and another exception because of it."""
    try:
        raise THE_SAME
    except ValueError as error:
        raise RuntimeError("each time a new one") from error


@job(max_attempts=3, backoff="immediate")
async def afail_with_the_same() -> None:
    raise THE_SAME


@job(backoff=3_600)
def fail_often(journal: str) -> None:
    note(journal, "failed")
    raise ValueError("no")


fail_atomic = job(name="tests.sample.fail_atomic", backoff=3_600, atomic=True)(
    fail_often.function
)


@job(backoff=3_600)
async def afail_often(journal: str) -> None:
    note(journal, "failed")
    raise ValueError("no")


@job(max_attempts=3, backoff="immediate", retry={LookupError: False})
def fail_with(kind: str) -> None:
    raise {"lookup": LookupError, "value": ValueError, "exit": SystemExit}[kind](kind)


@job
def say(word: str) -> None:
    raise {
        "retry": Retry("again", after=60),
        "snooze": Snooze(60, "later"),
        "fail": Fail("hopeless"),
        "cancel": Cancel("not wanted"),
    }[word]


@job(takes_context=True)
def look(context: Context, journal: str) -> int:
    note(journal, context.job_type, context.attempt, context.max_attempts)
    return context.attempt


@job(timeout=0.2, max_attempts=1)
def slow(seconds: float = 5.0, word: str = "") -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.01)


@job(timeout=0.2, max_attempts=1)
async def aslow(seconds: float = 5.0) -> None:
    await asyncio.sleep(seconds)


@job(timeout=0.2, max_attempts=2, backoff="immediate")
def hang(journal: str) -> None:
    note(journal, "start", "hang")
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(0.05)


def keep_lock(how: str) -> None:
    """Keep the interpreter's lock, and never give it back; other threads do not run."""
    if how == "computing":
        re.match(r"(a+)+$", "a" * 60 + "b")
    ctypes.PyDLL(None).usleep(600_000_000)  # asleep in C


@job(timeout=1, max_attempts=2, backoff="immediate")
def hold_lock(journal: str, how: str = "computing") -> None:
    note(journal, "start", "hold")
    keep_lock(how)


hold_lock_once = job(
    name="tests.sample.hold_lock_once", timeout=1, delivery="at_most_once"
)(hold_lock.function)
hold_lock_for_good = job(
    name="tests.sample.hold_lock_for_good", timeout=None, backoff="immediate"
)(hold_lock.function)


@job(timeout=1, max_attempts=2, backoff="immediate")
async def ahold_lock(journal: str, how: str = "computing") -> None:
    note(journal, "start", "hold")
    keep_lock(how)


@job(timeout=0.5, max_attempts=2, backoff="immediate")
async def block_loop(journal: str) -> None:
    """Keep the event loop, and not the interpreter's lock."""
    note(journal, "start", "block")
    time.sleep(600)


@job
def hold(journal: str, gate: str) -> None:
    """Wait in a C function that keeps the interpreter's lock, for the other end of this
    named pipe."""
    note(journal, "start", "hold")
    ctypes.PyDLL(None).open(gate.encode(), os.O_RDONLY)


@job(max_crashes=3)
def die(journal: str, how: str = "kill") -> None:
    note(journal, "start", "die")
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(int(how))


die_again = job(name="tests.sample.die_again", max_crashes=50)(die.function)


@job
def leave_a_mess() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET search_path = pg_catalog")
        cursor.execute("SET TIME ZONE 'Asia/Tokyo'")
        cursor.execute("SELECT pg_advisory_lock(42)")
        cursor.execute("CREATE TEMP TABLE left_over (n integer)")


@job
async def aleave_a_mess() -> None:
    await sync_to_async(leave_a_mess.function)()


@job
def leave_open() -> None:
    connection.set_autocommit(False)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


@job
def see_session() -> list[str]:
    """Return what a session looks like."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('search_path'), current_setting('TimeZone'), "
            "(SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory' "
            "AND pid = pg_backend_pid()), to_regclass('left_over')::text"
        )
        row = cursor.fetchone()
    return [str(value) for value in row]


@job
def ask(statement: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return str(cursor.fetchone()[0])


@job
def wrap_statements() -> None:
    def refuse(*args: object) -> None:
        raise ValueError("no statement here")

    connection.close()
    with connection.execute_wrapper(refuse), contextlib.suppress(ValueError):
        connection.cursor().execute("SELECT 1")


context_variable: ContextVar[str | None] = ContextVar("sample", default=None)


@job
def set_context(value: str) -> str | None:
    before = context_variable.get()
    context_variable.set(value)
    return before


@job
async def aset_context(value: str) -> str | None:
    before = context_variable.get()
    context_variable.set(value)
    return before


@job
def query_and_stay(gate: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    gates[f"{gate} queried"] = threading.Event()
    gates[gate].wait(30)


@job
async def aquery() -> int:
    from django.contrib.auth.models import Group

    return await Group.objects.acount()


@job
def return_object() -> object:
    return object()


@job(atomic=True)
def return_object_atomic(name: str) -> object:
    from django.contrib.auth.models import Group

    return {"group": Group.objects.create(name=name)}


@job
def return_much(size: int) -> str:
    return "x" * size


@job(sensitive=("token",), max_attempts=1)
def leak(token: str) -> None:
    raise ValueError(f"cannot use {token}")


gates: dict[str, threading.Event] = {}


@job(backoff="immediate", sensitive=("secret",))
def tell(lines: int, retry: bool = False, secret: str = "") -> None:
    current = current_job()
    for n in current.progress(range(lines)):
        current.log(f"line {n}")
    if secret:
        current.log(f"with {secret}")
    current.checkin("done")
    if retry and current.attempt == 1:
        raise ValueError("not yet")


@job(max_attempts=1)
def step_by_step(folder: str, total: int) -> None:
    """Take each step when there is a file for it; a folder makes it stumble."""
    current = current_job()
    for step in current.progress(range(1, total + 1)):
        current.log(f"waits for step {step}")
        while not (sign := Path(folder) / str(step)).exists():
            time.sleep(0.01)
        if sign.is_dir():
            raise ValueError(f"stumbled at {step}")
        current.checkin(f"took step {step}")


@job
async def atell(lines: int) -> None:
    current = current_job()
    for n in current.progress(range(lines)):
        await asyncio.sleep(0)
        current.log(f"line {n}")
    current.checkin("done")


@job(atomic=True)
def tell_atomically(gate: str) -> None:
    current_job().checkin("inside")
    gates[gate].wait(30)
    current_job().checkin("at the end")


@job(backoff="immediate")
def remember() -> int:
    current = current_job()
    current.metadata["step"] = current.metadata.get("step", 0) + 1
    current.save_metadata()
    if current.attempt == 1:
        raise Retry
    return int(current.metadata["step"])


@job(backoff="immediate", max_attempts=1)
def query(count: int, fail: bool = False) -> None:
    for _ in range(count):
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    if fail:
        raise ValueError("after the queries")


@job
async def query_by_turns(count: int) -> None:
    for _ in range(count):
        await sync_to_async(query.function)(1)
        await asyncio.sleep(0)


@job
def stay(gate: str) -> None:
    while not gates[gate].wait(0.01):
        pass


stay_atomically = job(name="tests.sample.stay_atomically", atomic=True)(stay.function)


@job
def stay_and_fail(gate: str) -> None:
    while not gates[gate].wait(0.01):
        pass
    raise ValueError("the gate is open")


@job
async def astay_and_fail(gate: str) -> None:
    while not gates[gate].is_set():
        await asyncio.sleep(0.01)
    raise ValueError("the gate is open")


@job
async def astay(gate: str) -> None:
    while not gates[gate].is_set():
        await asyncio.sleep(0.01)


@job(timeout=0.2, max_attempts=1)
def hang_until(gate: str) -> None:
    """Ignore whatever it is told, until the gate opens."""
    while not gates[gate].is_set():
        with contextlib.suppress(BaseException):
            time.sleep(0.01)


@job
async def athread() -> int:
    """Return the thread in which async handlers reach the database."""
    return await sync_to_async(threading.get_ident)()


@job(unique=True)
def add_alone(a: int, b: int = 0) -> int:
    return a + b


@job(unique=("document",), on_duplicate="replace")
def render(document: int, why: str = "") -> int:
    return document


@job(unique=("document",), debounce=30, debounce_max=300)
def settle(document: int, why: str = "") -> int:
    return document


@job(unique=("user",), unique_until=300, on_duplicate="return")
def remind(user: int, why: str = "") -> int:
    return user


@job(unique=("user",), unique_until="forever")
def greet_once(user: int) -> int:
    return user


@job(unique=("document",), unique_until="started", on_duplicate="return")
def index(document: int, why: str = "") -> int:
    return document


@job(
    queue="mail",
    priority=7,
    expires_in=3_600,
    on_complete="tests.sample.report",
    unique=True,
    unique_until="started",
)
def with_all_options(a: object = 0, b: object = "none") -> None:
    """Has whatever a job type says of its jobs."""


@job(on_complete="tests.sample.chain_b")
def chain_a() -> None:
    """The first of three."""


@job(on_complete="tests.sample.chain_c", max_attempts=1)
def chain_b(job: str, status: str) -> None:
    raise ValueError("the middle fails")


@job
def chain_c(job: str, status: str) -> str:
    return status


@job(
    queue="mail",
    priority=7,
    expires_in=3_600,
    on_complete="tests.sample.report",
    unique=("status",),
    unique_until="started",
)
def follow_with_options(job: str, status: str) -> None:
    """Follows, with whatever a job type says of its jobs."""


@job
def report(job: str, status: str) -> str:
    return f"{job} {status}"


ENDS = {"error": ValueError, "cancel": Cancel, "fail": Fail}


@job(on_complete=report, max_attempts=2, backoff="immediate", max_crashes=1)
def followed(word: str = "") -> str:
    if word:
        raise ENDS[word]("no")
    return "done"


@job(on_complete=report, atomic=True, max_attempts=1)
def followed_atomic(fails: bool = False) -> None:
    if fails:
        raise ValueError("no")


@job
def on_good(result: object) -> object:
    return result


@job
def on_bad(status: str, error_class: str, error_message: str) -> str:
    return f"{status}: {error_class}: {error_message}"


@job
def on_any(**arguments: object) -> dict[str, object]:
    return arguments


@job
def without_arguments() -> None:
    """Follow on anything, and ask for nothing."""


@job(
    on_success=on_good,
    on_failure=[on_bad, without_arguments],
    on_complete=("tests.sample.on_any",),
    max_attempts=1,
    max_crashes=1,
)
def end_with(word: str = "") -> object:
    if word:
        raise ENDS[word]("no")
    return {"done": ["ü", 1, None]}


@job(on_success=on_good, on_failure=on_bad, delivery="at_most_once")
def end_once() -> None:
    """Succeed, or be lost with its worker."""


@job(on_success="tests.sample.double")
def count_one(number: int = 1) -> int:
    return number


@job(on_success="tests.sample.report_number")
def double(result: int) -> int:
    return result * 2


@job
def report_number(result: int) -> str:
    return f"it is {result}"


# What comes after a handler, and hangs.


def never_return(**arguments: Any) -> None:
    time.sleep(600)


async def anever_return(**arguments: Any) -> None:
    await asyncio.sleep(600)


RECEIVERS: dict[str, Callable[..., Any]] = {
    "sync": never_return,
    "async": anever_return,
}


class Unspeakable(Exception):
    def __str__(self) -> str:
        time.sleep(600)
        return ""


def end_badly(journal: str, how: str, sender: object) -> str:
    """Return, or raise; what comes after it hangs."""
    note(journal, "start", "end")
    if how == "text":
        raise Unspeakable
    receiver = RECEIVERS[how]
    signals.attempt_succeeded.connect(receiver, sender=sender, weak=False)
    return "done"


@job(timeout=60, max_attempts=1)
def end_stuck(journal: str, how: str) -> str:
    return end_badly(journal, how, end_stuck)


@job(timeout=60, max_attempts=1)
async def aend_stuck(journal: str, how: str) -> str:
    return end_badly(journal, how, aend_stuck)


@job(timeout=1, max_attempts=1)
async def block_thread(journal: str) -> None:
    note(journal, "start", "block")
    await sync_to_async(time.sleep)(600)


@job(max_attempts=1)
async def afail(journal: str) -> None:
    note(journal, "start", "fail")
    raise ValueError("no such order")


@job(timeout=None, max_attempts=1, max_crashes=1)
def run_another_program(journal: str) -> None:
    note(journal, "start", "program")
    os.execv("/bin/sleep", ["sleep", "600"])


@job(timeout=60, max_attempts=1)
async def treat_loop(journal: str, how: str) -> str:
    note(journal, "start", how)
    loop, own = asyncio.get_running_loop(), asyncio.current_task()
    if how == "stop":
        loop.stop()
    elif how == "cancel":
        for task in asyncio.all_tasks() - {own}:
            task.cancel()
    else:
        loop.create_task(exit_from_task())
        await asyncio.sleep(0)
    return how


async def exit_from_task() -> None:
    raise SystemExit(3)
