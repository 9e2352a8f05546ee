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
from psycopg import IsolationLevel

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
    """One line, in one write, so that processes can share the file."""
    line = " ".join([str(time.monotonic_ns()), str(os.getpid()), *map(str, words)])
    descriptor = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(descriptor, line.encode() + b"\n")
    finally:
        os.close(descriptor)


def timed_notes(journal: str | Path) -> list[tuple[int, list[str]]]:
    """The lines so far: when, and the words without the process."""
    path = Path(journal)
    lines = path.read_text().splitlines() if path.exists() else []
    return [(int(at), words) for at, _, *words in map(str.split, lines)]


def notes(journal: str | Path) -> list[list[str]]:
    """The words of the lines so far."""
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
    """Return a sum, later."""
    await asyncio.sleep(0)
    return a + b


@job
def write(journal: str, word: str = "ran", seconds: float = 0.0) -> None:
    """Note a start, take some time, note the end."""
    note(journal, "start", word)
    if seconds:
        time.sleep(seconds)
    note(journal, "end", word)


@job
def write_slowly(journal: str, word: str = "ran") -> None:
    """The same in a twentieth of a second."""
    write.function(journal, word, seconds=0.05)


@job
async def awrite(journal: str, word: str = "ran", seconds: float = 0.0) -> None:
    """The same without a thread."""
    note(journal, "start", word)
    await asyncio.sleep(seconds)
    note(journal, "end", word)


@job
def linger(journal: str, word: str = "ran") -> None:
    """Take a minute in the first attempt, and no time in the next ones."""
    is_first = ["start", word] not in notes(journal)
    note(journal, "start", word)
    if is_first:
        time.sleep(60)
    note(journal, "end", word)


@job
def await_leave(journal: str, word: str = "ran") -> None:
    """Go on until the test gives leave to end."""
    note(journal, "start", word)
    while not Path(f"{journal}.{word}").exists():
        time.sleep(0.005)
    note(journal, "end", word)


def give_leave(journal: str, word: str = "ran") -> None:
    """Let the job with this word end."""
    Path(f"{journal}.{word}").touch()


LEAKED: list[bytearray] = []


@job
def leak_memory(megabytes: int) -> None:
    """Take memory that is never given back."""
    LEAKED.append(bytearray(b"x") * (megabytes << 20))


@job(delivery="at_most_once")
def write_once(journal: str, word: str = "ran", seconds: float = 0.0) -> None:
    """The same, at most once."""
    note(journal, "start", word)
    time.sleep(seconds)
    note(journal, "end", word)


@job(concurrency=2)
def write_limited(journal: str, word: str = "ran", seconds: float = 0.0) -> None:
    """The same, two at a time."""
    note(journal, "start", word)
    time.sleep(seconds)
    note(journal, "end", word)


@job(per_key=PerKey("key"))
def count_keyed(key: str = "none") -> None:
    """Takes its turn by key, and needs no arguments."""


@job(per_key=PerKey("key", concurrency=2))
def write_keyed(
    journal: str, key: str | int | None = "all", word: str = "ran", seconds: float = 0.0
) -> None:
    """The same, two of each key at a time."""
    note(journal, "start", key, word)
    time.sleep(seconds)
    note(journal, "end", key, word)


@job(rate=Rate(1_000, per=1, weight="size"))
def write_weighed(journal: str = os.devnull, size: int = 1) -> None:
    """Counts with its size in its rate."""
    note(journal, "start", size)


@job(atomic=True)
def write_atomic(journal: str, name: str, seconds: float = 0.0) -> str:
    """Write a row and note that it was tried."""
    from django.contrib.auth.models import Group

    Group.objects.create(name=name)
    note(journal, "wrote", name)
    time.sleep(seconds)
    return name


@job(max_attempts=3, backoff="immediate")
def fail(message: str = "no") -> None:
    """Fail each time."""
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
    """The same without a thread, and without another exception."""
    raise THE_SAME


@job(backoff=3_600)
def fail_often(journal: str) -> None:
    """Note it, and fail."""
    note(journal, "failed")
    raise ValueError("no")


@job(backoff=3_600)
async def afail_often(journal: str) -> None:
    """The same without a thread."""
    note(journal, "failed")
    raise ValueError("no")


@job(backoff=3_600, atomic=True)
def fail_atomic(journal: str) -> None:
    """The same in a transaction."""
    note(journal, "failed")
    raise ValueError("no")


@job(max_attempts=3, backoff="immediate", retry={LookupError: False})
def fail_with(kind: str) -> None:
    """Fail with the exception of this name."""
    raise {"lookup": LookupError, "value": ValueError, "exit": SystemExit}[kind](kind)


@job
def say(word: str) -> None:
    """Say one of the four words."""
    raise {
        "retry": Retry("again", after=60),
        "snooze": Snooze(60, "later"),
        "fail": Fail("hopeless"),
        "cancel": Cancel("not wanted"),
    }[word]


@job(takes_context=True)
def look(context: Context, journal: str) -> int:
    """Note what the context says."""
    note(journal, context.job_type, context.attempt, context.max_attempts)
    return context.attempt


@job(timeout=0.2, max_attempts=1)
def slow(seconds: float = 5.0, word: str = "") -> None:
    """Take longer than allowed, in small steps."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.01)


@job(timeout=0.2, max_attempts=1)
async def aslow(seconds: float = 5.0) -> None:
    """The same without a thread."""
    await asyncio.sleep(seconds)


@job(timeout=0.2, max_attempts=2, backoff="immediate")
def hang(journal: str) -> None:
    """Ignore whatever it is told."""
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
    """Keep the interpreter's lock."""
    note(journal, "start", "hold")
    keep_lock(how)


@job(timeout=1, max_attempts=2, backoff="immediate")
async def ahold_lock(journal: str, how: str = "computing") -> None:
    """The same in the event loop."""
    note(journal, "start", "hold")
    keep_lock(how)


@job(timeout=1, delivery="at_most_once")
def hold_lock_once(journal: str, how: str = "computing") -> None:
    """The same, at most once."""
    note(journal, "start", "hold")
    keep_lock(how)


@job(timeout=None, backoff="immediate")
def hold_lock_for_good(journal: str, how: str = "computing") -> None:
    """The same, and nothing forbids it."""
    note(journal, "start", "hold")
    keep_lock(how)


@job(timeout=0.5, max_attempts=2, backoff="immediate")
async def block_loop(journal: str) -> None:
    """Keep the event loop, and not the interpreter's lock."""
    note(journal, "start", "block")
    time.sleep(600)


@job(timeout=1, max_attempts=3, backoff="immediate")
def linger_in_time(journal: str, word: str = "ran") -> None:
    """Like linger, with a short timeout."""
    linger.function(journal, word)


@job(timeout=0.5, max_attempts=3, backoff="immediate")
async def awrite_in_time(journal: str, word: str = "ran", seconds: float = 0.0) -> None:
    """Like awrite, with a short timeout."""
    note(journal, "start", word)
    await asyncio.sleep(seconds)
    note(journal, "end", word)


@job
def hold(journal: str, gate: str) -> None:
    """Wait in a C function that keeps the interpreter's lock, for the other end of this
    named pipe."""
    note(journal, "start", "hold")
    ctypes.PyDLL(None).open(gate.encode(), os.O_RDONLY)


@job(max_crashes=3)
def die(journal: str, how: str = "kill") -> None:
    """Take the whole process along."""
    note(journal, "start", "die")
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(int(how))


@job(max_crashes=50)
def die_again(journal: str) -> None:
    """The same, many times."""
    die.function(journal)


@job
def leave_a_mess() -> None:
    """Change whatever of a session can be changed."""
    with connection.cursor() as cursor:
        cursor.execute("SET search_path = pg_catalog")
        cursor.execute("SET TIME ZONE 'Asia/Tokyo'")
        cursor.execute("SELECT pg_advisory_lock(42)")
        cursor.execute("CREATE TEMP TABLE left_over (n integer)")


@job
async def aleave_a_mess() -> None:
    """The same, from async code."""
    await sync_to_async(leave_a_mess.function)()


@job
def leave_open() -> None:
    """Leave a transaction open."""
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
    """Return the one value of this statement, as text."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return str(cursor.fetchone()[0])


@job
def wrap_statements() -> None:
    """Refuse all statements for a moment, and connect meanwhile."""

    def refuse(*args: object) -> None:
        raise ValueError("no statement here")

    connection.close()
    with connection.execute_wrapper(refuse), contextlib.suppress(ValueError):
        connection.cursor().execute("SELECT 1")


@job
def change_transactions() -> None:
    """Have transactions begin otherwise from now on."""
    connection.ensure_connection()
    raw = connection.connection
    raw.isolation_level, raw.read_only = IsolationLevel.SERIALIZABLE, True


context_variable: ContextVar[str | None] = ContextVar("sample", default=None)


@job
def set_context(value: str) -> str | None:
    """Return what the last handler has left, and leave this."""
    before = context_variable.get()
    context_variable.set(value)
    return before


@job
async def aset_context(value: str) -> str | None:
    """The same without a thread."""
    before = context_variable.get()
    context_variable.set(value)
    return before


@job
def query_and_stay(gate: str) -> None:
    """Ask the database, tell so, and wait until the gate opens."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    gates[f"{gate} queried"] = threading.Event()
    gates[gate].wait(30)


@job
async def aquery() -> int:
    """Ask the database something, from async code."""
    from django.contrib.auth.models import Group

    return await Group.objects.acount()


@job
def return_object() -> object:
    """Return something that JSON does not have."""
    return object()


@job(atomic=True)
def return_object_atomic(name: str) -> object:
    """Write a row, and return something that JSON does not have."""
    from django.contrib.auth.models import Group

    return {"group": Group.objects.create(name=name)}


@job
def return_much(size: int) -> str:
    """Return a long string."""
    return "x" * size


@job(sensitive=("token",), max_attempts=1)
def leak(token: str) -> None:
    """Put a secret into an exception."""
    raise ValueError(f"cannot use {token}")


gates: dict[str, threading.Event] = {}


@job(backoff="immediate", sensitive=("secret",))
def tell(lines: int, retry: bool = False, secret: str = "") -> None:
    """Tell how far it is."""
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
    """Tell how far it is."""
    current = current_job()
    for n in current.progress(range(lines)):
        await asyncio.sleep(0)
        current.log(f"line {n}")
    current.checkin("done")


@job(atomic=True)
def tell_atomically(gate: str) -> None:
    """Tell, wait, and tell again, in one transaction."""
    current_job().checkin("inside")
    gates[gate].wait(30)
    current_job().checkin("at the end")


@job(backoff="immediate")
def remember() -> int:
    """Go one step in each attempt."""
    current = current_job()
    current.metadata["step"] = current.metadata.get("step", 0) + 1
    current.save_metadata()
    if current.attempt == 1:
        raise Retry
    return int(current.metadata["step"])


@job(backoff="immediate", max_attempts=1)
def query(count: int, fail: bool = False) -> None:
    """Send this many queries."""
    for _ in range(count):
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    if fail:
        raise ValueError("after the queries")


@job
async def query_by_turns(count: int) -> None:
    """The same, by turns with others."""
    for _ in range(count):
        await sync_to_async(query.function)(1)
        await asyncio.sleep(0)


@job
def stay(gate: str) -> None:
    """Wait until the gate opens, in small steps."""
    while not gates[gate].wait(0.01):
        pass


@job
def stay_and_fail(gate: str) -> None:
    """Wait until the gate opens, and fail then."""
    while not gates[gate].wait(0.01):
        pass
    raise ValueError("the gate is open")


@job
async def astay_and_fail(gate: str) -> None:
    """The same without a thread."""
    while not gates[gate].is_set():
        await asyncio.sleep(0.01)
    raise ValueError("the gate is open")


@job(atomic=True)
def stay_atomically(gate: str) -> None:
    """The same in a transaction."""
    while not gates[gate].wait(0.01):
        pass


@job
async def astay(gate: str) -> None:
    """The same without a thread."""
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
    """Return a sum; one such job at a time."""
    return a + b


@job(unique=("document",), on_duplicate="replace")
def render(document: int, why: str = "") -> int:
    """One waiting job of each document, with the newest data."""
    return document


@job(unique=("document",), debounce=30, debounce_max=300)
def settle(document: int, why: str = "") -> int:
    """Once a document has not changed for half a minute."""
    return document


@job(unique=("user",), unique_until=300, on_duplicate="return")
def remind(user: int, why: str = "") -> int:
    """At most once in five minutes."""
    return user


@job(unique=("user",), unique_until="forever")
def greet_once(user: int) -> int:
    """Once in the life of a user."""
    return user


@job(unique=("document",), unique_until="started", on_duplicate="return")
def index(document: int, why: str = "") -> int:
    """One waiting job of each document."""
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
    """The second of three."""
    raise ValueError("the middle fails")


@job
def chain_c(job: str, status: str) -> str:
    """The last of three."""
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
    """Follow on another job."""
    return f"{job} {status}"


@job(on_complete=report, max_attempts=2, backoff="immediate", max_crashes=1)
def followed(word: str = "") -> str:
    """Return, or raise one of the words."""
    if word:
        raise {"error": ValueError("no"), "cancel": Cancel("no"), "fail": Fail("no")}[
            word
        ]
    return "done"


@job(on_complete=report, atomic=True, max_attempts=1)
def followed_atomic(fails: bool = False) -> None:
    """Return or raise, in one transaction with its end."""
    if fails:
        raise ValueError("no")


@job
def on_good(result: object) -> object:
    """Follow on a success."""
    return result


@job
def on_bad(status: str, error_class: str, error_message: str) -> str:
    """Follow on a failure."""
    return f"{status}: {error_class}: {error_message}"


@job
def on_any(**arguments: object) -> dict[str, object]:
    """Follow on any end, with all that is known of it."""
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
    """Return, or raise one of the words."""
    if word:
        raise {"error": ValueError("no"), "cancel": Cancel("no"), "fail": Fail("no")}[
            word
        ]
    return {"done": ["ü", 1, None]}


@job(on_success=on_good, on_failure=on_bad, delivery="at_most_once")
def end_once() -> None:
    """Succeed, or be lost with its worker."""


@job(on_success="tests.sample.double")
def count_one(number: int = 1) -> int:
    """The first link of a chain that passes its results on."""
    return number


@job(on_success="tests.sample.report_number")
def double(result: int) -> int:
    """The second link."""
    return result * 2


@job
def report_number(result: int) -> str:
    """The last link."""
    return f"it is {result}"


# Links of chains whose workers may be killed at any moment.


@job(
    on_success="tests.sample.link_b",
    on_complete="tests.sample.link_end",
    max_crashes=99,
)
def link_a(number: int) -> int:
    """The first link."""
    time.sleep(0.05)
    return number


@job(on_failure="tests.sample.link_c", max_attempts=1, max_crashes=99)
def link_b(result: int) -> None:
    """The second link."""
    time.sleep(0.05)
    raise ValueError(str(result))


@job(on_complete="tests.sample.link_end", max_crashes=99, atomic=True)
def link_c(error_message: str) -> int:
    """The third link."""
    time.sleep(0.05)
    return int(error_message)


@job(max_crashes=99)
def link_end(job: str) -> None:
    """The end of a chain."""


# What comes after a handler, and hangs.


def never_return(**arguments: Any) -> None:
    """A receiver that never comes back."""
    time.sleep(600)


async def anever_return(**arguments: Any) -> None:
    """The same for those that are awaited."""
    await asyncio.sleep(600)


RECEIVERS: dict[str, Callable[..., Any]] = {
    "sync": never_return,
    "async": anever_return,
}


class Unspeakable(Exception):
    """Nobody can say what it is."""

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
    """What comes after it hangs."""
    return end_badly(journal, how, end_stuck)


@job(timeout=60, max_attempts=1)
async def aend_stuck(journal: str, how: str) -> str:
    """The same in the event loop."""
    return end_badly(journal, how, aend_stuck)


@job(timeout=1, max_attempts=1)
async def block_thread(journal: str) -> None:
    """Wait for sync code that does not end."""
    note(journal, "start", "block")
    await sync_to_async(time.sleep)(600)


@job(max_attempts=1)
async def afail(journal: str) -> None:
    """Raise."""
    note(journal, "start", "fail")
    raise ValueError("no such order")


@job(timeout=None, max_attempts=1, max_crashes=1)
def run_another_program(journal: str) -> None:
    """Put another program in the place of this one."""
    note(journal, "start", "program")
    os.execv("/bin/sleep", ["sleep", "600"])


@job(timeout=60, max_attempts=1)
async def treat_loop(journal: str, how: str) -> str:
    """Do to the event loop what no handler should do."""
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
    """End the program, says this task."""
    raise SystemExit(3)
