"""Many cases from the same rows, in one test: each is rolled back before the next."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import pytest
from django.db import transaction

P = ParamSpec("P")
R = TypeVar("R")


def undone(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, which leaves no change in the database."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with transaction.atomic():
            try:
                return function(*args, **kwargs)
            finally:
                transaction.set_rollback(True)

    return call


def check_each(
    check: Callable[..., object], cases: Iterable[tuple[Any, ...]], least: int = 1
) -> None:
    """Call a check with the values of each case. Raises AssertionError with all that
    failed, or if there are fewer cases than this."""
    tried, failed = list(cases), []
    for case in tried:
        try:
            check(*case)
        except (Exception, pytest.fail.Exception) as error:
            text = "".join(traceback.format_exception(error, limit=-3))
            failed.append(f"{getattr(check, '__name__', check)}{case!r}\n{text}")
    assert not failed, "\n".join([f"{len(failed)} of {len(tried)} cases:", *failed])
    assert len(tried) >= least, f"only {len(tried)} cases"
