"""Many cases from the same rows, in one test: each is rolled back before the next."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction


@contextmanager
def undone() -> Iterator[None]:
    """No change is left in the database; also around a function, by ``@undone()``."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


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
