"""Which functions can be tasks: the same as those that can be handlers."""

from __future__ import annotations

from functools import partial

from django_jobqueue.backends import task
from django_jobqueue.backends.compat import InvalidTask
from tests.domain.test_handler_functions import REFUSED
from tests.support.tables import differing, refusal


def test_what_cannot_be_a_handler_cannot_be_a_task() -> None:
    def fits(said: str, wanted: tuple[str, str]) -> bool:
        return all(text in said for text in wanted)

    rows = [(function, (problem, do)) for function, problem, do in REFUSED.values()]
    assert differing(rows, partial(refusal, InvalidTask, task), fits) == []
