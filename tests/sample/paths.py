"""A handler of each kind for each rare path: sync ones, and async ones with an "a"."""

from __future__ import annotations

import asyncio
import os
import signal
import time

from django_jobqueue import Rate, job
from tests.sample.jobs import note, notes


def _begin(journal: str, word: str, how: str) -> None:
    note(journal, "start", word)
    if how == "die" and notes(journal).count(["start", word]) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "fail":
        raise ValueError(word)


def _act(journal: str, word: str, how: str = "") -> None:
    """Note it, and end as asked; "stay" is for half a minute."""
    _begin(journal, word, how)
    for _ in range(1_500 if how == "stay" else 2):
        time.sleep(0.02)
    note(journal, "end", word)


async def _aact(journal: str, word: str, how: str = "") -> None:
    """The same without a thread."""
    _begin(journal, word, how)
    for _ in range(1_500 if how == "stay" else 2):
        await asyncio.sleep(0.02)
    note(journal, "end", word)


act = job(name="sample.act")(_act)
aact = job(name="sample.aact")(_aact)
act_limited = job(name="sample.act_limited", concurrency=1)(_act)
aact_limited = job(name="sample.aact_limited", concurrency=1)(_aact)
act_rated = job(name="sample.act_rated", rate=Rate(6, per=1, burst=2))(_act)
aact_rated = job(name="sample.aact_rated", rate=Rate(6, per=1, burst=2))(_aact)
act_once = job(name="sample.act_once", delivery="at_most_once")(_act)
aact_once = job(name="sample.aact_once", delivery="at_most_once")(_aact)
act_overridden = job(name="sample.act_overridden", backoff="immediate")(_act)
aact_overridden = job(name="sample.aact_overridden", backoff="immediate")(_aact)
act_atomic = job(name="sample.act_atomic", atomic=True)(_act)
