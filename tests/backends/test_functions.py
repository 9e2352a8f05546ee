"""Which functions can be tasks: the same as those that can be handlers."""

from __future__ import annotations

import pytest

from django_jobqueue.backends import task
from django_jobqueue.backends.compat import InvalidTask
from tests.domain.test_handler_functions import REFUSED


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_a_handler_cannot_be_a_task(kind: str) -> None:
    function, problem, instead = REFUSED[kind]
    with pytest.raises(InvalidTask) as caught:
        task(function)
    assert problem in str(caught.value)
    assert instead in str(caught.value)
