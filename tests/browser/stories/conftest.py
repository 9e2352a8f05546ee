"""Somebody on call, real workers, and a bank that opens and closes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from django_jobqueue.admin.failures import failure_matrix
from django_jobqueue.stats import overview
from tests.browser.conftest import See
from tests.browser.stories.on_call import OnCall

OVERVIEW = "/admin/jobqueue/"
BY_CLICKS = pytest.mark.slow("clicks through pages that tests/admin asks one by one")


@pytest.fixture
def me(see: See) -> Iterator[OnCall]:
    """The one who tells the story, with all rights; the clicks are counted."""
    overview.forget()
    failure_matrix.forget()
    on_call = OnCall(see())
    on_call.screen.hastens()
    yield on_call
    on_call.is_done()


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    """It is open while there is this file."""
    return tmp_path / "bank"
