"""Separates a forked process from its parent.

The supervisor forks workers; handlers may fork, too, on purpose or within a library.
The architecture page has a table of everything that a fork inherits.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NoReturn

from asgiref.sync import SyncToAsync
from django.core.cache import caches
from django.db import connections

from django_jobqueue.conf import conf

logger = logging.getLogger("django_jobqueue.supervisor")

_PR_SET_PDEATHSIG: Final = 1
STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ORPHANED: Final = 71  # the exit code of a process whose supervisor is gone

# Connections and pools of a parent. To let go of one could be to close it, and then the
# server ends the session that the parent uses.
_of_parents: Final[list[object]] = []

_is_worker_process = False
_forked_in: int | None = None  # the guarded thread that this process is a fork of


class _Thread(threading.local):
    """State of this thread; a fork has a copy of it."""

    is_guarded = False  # it calls code of the project
    signals: set[int | signal.Signals] | None = (
        None  # blocked before the fork under way
    )
    loop: asyncio.AbstractEventLoop | None = None  # in which it does so


_thread = _Thread()


# Forks of the supervisor.


def let_go() -> None:
    """Close what two processes must not share. To be called before a fork, by the
    process that has opened it."""
    for close in (connections.close_all, _close_pools, caches.close_all):
        try:
            close()
        except Exception:  # the child drops what is still there
            logger.warning("A connection could not be closed for a fork", exc_info=True)
    for handler in _log_handlers():
        with contextlib.suppress(Exception):
            handler.flush()  # a child would write what it keeps back once more
    flush_output()


def settle_in(parent: int) -> None:
    """Prepare a process that the supervisor has just forked.

    It dies with its parent. It leaves signals, which a terminal or systemd sends to
    all, to the supervisor. It has a session of its own, so that whatever its handlers
    start can be killed with it.
    """
    _die_with_parent()
    if os.getppid() != parent:  # it died before that
        os._exit(ORPHANED)
    os.setsid()
    for number in STOP_SIGNALS:
        # Not SIG_IGN: the programs that a handler starts would inherit that.
        signal.signal(number, _leave_it_to_the_supervisor)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    _drop_connections()
    # The thread of asgiref's executor was left behind; whoever hands it something, such
    # as asyncio.run() with the ORM in a sync handler, would wait forever.
    SyncToAsync.single_thread_executor = ThreadPoolExecutor(max_workers=1)


def _die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies. A program that a thread
    puts in its place is killed only if that thread has said so, too."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def flush_output() -> None:
    """Write what was printed: a fork would print it again, and os._exit() not at
    all."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()


# Forks of handlers.


def guard_this_process() -> None:
    """Keep its forks from using its connections, and let signals stop them."""
    global _is_worker_process
    _is_worker_process = True


def guard_this_thread(loop: asyncio.AbstractEventLoop | None = None) -> None:
    """From now on it calls code of the project, perhaps in this event loop. That may
    fork and come back twice; see ``end_if_forked``."""
    global _forked_in
    if _forked_in == threading.get_ident():
        _forked_in = None
    if _is_worker_process and not _thread.is_guarded:
        _die_with_parent()
    _thread.is_guarded = True
    _thread.loop = loop


def end_if_forked() -> None:
    """End this process if it is a fork that was made in this thread.

    To be called where code of the project has returned or raised, before anything else
    is done: the parent runs the job, and a fork that went on would be a second worker.
    """
    # A few times for each job, so nothing is looked up that is not needed.
    if _forked_in is not None and _forked_in == threading.get_ident():
        _end()


class _EndOfLoop(deque[Any]):
    """In the place of an event loop's queue of what is ready."""

    def popleft(self) -> NoReturn:
        _end()


def _end() -> NoReturn:
    """End this process as Python would end a program here."""
    code = 1
    try:
        code = _exit_code(sys.exception())
        flush_output()
    finally:
        os._exit(code)


def _exit_code(error: BaseException | None) -> int:
    if error is None:
        return 0
    if not isinstance(error, SystemExit):
        traceback.print_exception(error)
        return 1
    if isinstance(error.code, int):
        return error.code & 0xFF
    if error.code is not None:
        print(error.code, file=sys.stderr)
    return 0 if error.code is None else 1


def _before_fork() -> None:
    """A signal for the child must wait until it does not ignore it any more."""
    if _is_worker_process:
        _thread.signals = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)


def _after_fork() -> None:
    if _thread.signals is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, _thread.signals)
        _thread.signals = None


def _begin_fork() -> None:
    """In the child, whoever forked it."""
    global _forked_in
    _forked_in = threading.get_ident() if _thread.is_guarded else None
    if _is_worker_process or _thread.is_guarded:
        _drop_connections()
        if _thread.loop is not None:
            _end_with_next_turn(_thread.loop)
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is _leave_it_to_the_supervisor:
                default = number == signal.SIGINT and signal.default_int_handler
                signal.signal(number, default or signal.SIG_DFL)
    _after_fork()


def _end_with_next_turn(loop: asyncio.AbstractEventLoop) -> None:
    """The loop belongs to the parent, and so does the descriptor with which it waits:
    when the handler awaits something, the child ends."""
    loop.call_soon(_end)  # enough for a loop of another make; it does what is ready
    with contextlib.suppress(AttributeError):
        loop._ready = _EndOfLoop([None])  # type: ignore[attr-defined]


def _drop_connections() -> None:
    """Forget connections that were opened by a parent, without a word to the server.
    Whoever needs one here opens another."""
    for wrapper in connections.all(initialized_only=True):
        if wrapper.connection is None or _is_in_memory(wrapper):
            continue
        _of_parents.append(wrapper.connection)
        wrapper.run_on_commit = []
        if wrapper.in_atomic_block:  # as after Django's close()
            wrapper.closed_in_transaction = True
            wrapper.needs_rollback = True
        else:
            wrapper.connection = None
    for pools in _pools():
        _of_parents.extend(pools.values())
        pools.clear()


def _is_in_memory(wrapper: Any) -> bool:
    """True for an SQLite database in memory, which the fork copies."""
    ask = getattr(wrapper, "is_in_memory_db", None)
    return ask is not None and bool(ask())


def _log_handlers() -> set[logging.Handler]:
    loggers = (logging.root, *logging.root.manager.loggerDict.values())
    return {handler for one in loggers for handler in getattr(one, "handlers", ())}


def _close_pools() -> None:
    for pools in _pools():
        for alias in list(pools):
            wrapper: Any = connections[alias]
            wrapper.close_pool()


def _pools() -> Iterable[dict[str, Any]]:
    """Django's pools, by alias. All threads share them."""
    wrappers = [connections[conf.database], *connections.all(initialized_only=True)]
    by_wrapper = [getattr(wrapper, "_connection_pools", {}) for wrapper in wrappers]
    return {id(pools): pools for pools in by_wrapper}.values()


def _leave_it_to_the_supervisor(number: int, frame: object) -> None:
    """Handles the signals that stop a worker process."""


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork, after_in_child=_begin_fork
)
