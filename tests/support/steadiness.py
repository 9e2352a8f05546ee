"""What would make tests depend on chance, or on how busy the machine is, and what no
test may do: changed in the app for the whole run, and nowhere else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

import pytest

from django_jobqueue.contrib.privacy import personal_data
from django_jobqueue.operations import bulk
from django_jobqueue.store.connection import DjangoDatabase

JSON_TYPES: Final = (114, 199, 3802, 3807)  # json, jsonb, and arrays of them

draw = random.random


def draw_upper_half() -> float:
    """No wait is drawn near zero: a job whose first attempt failed is not due again as
    long as its test goes on."""
    return (1 + draw()) / 2


def refuse_json(original: Any) -> Any:
    """Django's connections give JSON as text, and the machinery's own its value: what
    may be read by both is cast to text."""

    def execute(self: DjangoDatabase, cursor: Any, statement: str, params: Any) -> None:
        original(self, cursor, statement, params)
        columns = cursor.description or ()
        assert not [c.name for c in columns if c.type_code in JSON_TYPES], statement

    return execute


@pytest.fixture(scope="session", autouse=True)
def steadiness() -> Iterator[None]:
    """Whatever the machine does meanwhile, drafts are counted while they are made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random, "random", draw_upper_half)
        patch.setattr(bulk, "AT_ONCE", 60.0)
        patch.setattr(personal_data, "AT_ONCE", 60.0)
        # private: the only place where each statement of such a connection comes by.
        patch.setattr(DjangoDatabase, "_execute", refuse_json(DjangoDatabase._execute))
        yield
