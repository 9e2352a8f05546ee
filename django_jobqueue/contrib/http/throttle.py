"""Counts the requests of each caller, in the cache of the project."""

from __future__ import annotations

import time
from hashlib import sha256
from typing import Final

from django.core.cache import cache

from django_jobqueue.conf import conf
from django_jobqueue.contrib.http.callers import Caller, identity_of
from django_jobqueue.contrib.http.problems import Problem

PREFIX: Final = "jobqueue-requests"


def check_rate(caller: Caller) -> None:
    """Raises Problem for a caller that has sent more requests in this second, minute or
    hour than HTTP_THROTTLE allows."""
    _count(identity_of(caller), "A caller may send {most:,} requests in {seconds:,} s.")


def check_refused(address: str) -> None:
    """The same for requests from this address with wrong credentials. Those with right
    ones are not counted: others may come from the same proxy."""
    _count(
        f"refused:{address}",
        "An address may send {most:,} wrong credentials in {seconds:,} s.",
    )


def _count(who: str, sentence: str) -> None:
    if conf.http_throttle is None:
        return
    most, seconds = conf.http_throttle
    window, passed = divmod(time.time(), seconds)
    digest = sha256(who.encode()).hexdigest()
    key = f"{PREFIX}:{digest}:{seconds}:{window:.0f}"
    if cache.add(key, 1, timeout=2 * seconds):
        return
    try:
        count = cache.incr(key)
    except ValueError:  # the cache has dropped it meanwhile
        return
    if count > most:
        left = max(1, round(seconds - passed))
        raise Problem(
            "too_many_requests",
            sentence.format(most=most, seconds=seconds),
            headers={"Retry-After": str(left)},
        )
