"""``jobqueue personal-data``: find, erase, delete, and the record of it."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest
from django.core.management.base import CommandError

from django_jobqueue.domain.personal_value import ERASED
from django_jobqueue.models import ArchivedJob, AuditEntry, Erasure, QueuedJob
from tests.commands.conftest import Terminal, jobqueue, refusal
from tests.operations.planted import tables_with
from tests.store.rows import ago, archive, make

pytestmark = pytest.mark.django_db

MAIL = "anna@example.com"


def personal_data(*arguments: str) -> Any:
    """The JSON that it prints."""
    return jobqueue("personal-data", *arguments, "--format", "json").json


def test_it_finds_and_leaves_nothing_behind() -> None:
    id = archive(data={"to": MAIL})
    found = personal_data("find", MAIL)
    assert found["rows"] == {"archived": 1}
    assert found["first"] == {"archived": [str(id)]}
    assert (found["total"], found["erasure"], found["earlier"]) == (1, None, [])
    assert not Erasure.objects.exists()
    assert tables_with(MAIL) == ["jobqueue_archivedjob"]


def test_it_says_how_many_rows_hold_the_value() -> None:
    archive(data={"to": MAIL})
    out = jobqueue(f"personal-data find {MAIL}").out
    assert "archived  1" in out.replace("     ", "  ")
    assert "holds the value" in out


def test_it_erases_and_says_what_it_did() -> None:
    id = archive(data={"to": MAIL})
    erased = personal_data("erase", MAIL, "--yes", "--reason", f"by {MAIL}")
    assert (erased["act"], erased["state"]) == ("erase", "done")
    assert erased["changed"] == {"archived": 1}
    assert erased["reason"] == f"by {ERASED}"
    assert ArchivedJob.objects.get(pk=id).data == {"to": ERASED}
    assert AuditEntry.objects.latest("id").by.startswith("command line")
    (before,) = personal_data("find", MAIL)["earlier"]
    assert before["erasure"] == erased["erasure"]
    assert tables_with(MAIL) == []


def test_it_deletes() -> None:
    archive(data={"to": MAIL})
    kept = archive(data={"to": "bert@example.com"})
    assert personal_data("delete", MAIL, "--yes")["changed"] == {"archived": 1}
    assert ArchivedJob.objects.get().pk == kept


def test_with_a_key_it_takes_short_values() -> None:
    archive(data={"customer": {"id": 7}, "seats": 7})
    personal_data("erase", "7", "--key", "customer.id", "--yes")
    assert ArchivedJob.objects.get().data == {"customer": {"id": ERASED}, "seats": 7}


def test_running_jobs_are_left_to_a_worker() -> None:
    make(data={"to": MAIL}, status="running", started_at=ago(5), attempts=1)
    out = jobqueue(f"personal-data erase {MAIL} --yes").out
    assert "Left: 1 running job. A worker goes on" in out
    row = Erasure.objects.get()
    assert (row.state, row.value) == ("running", MAIL)
    assert QueuedJob.objects.get(pk=row.job_id).data == {"erasure": str(row.pk)}


def test_nothing_is_erased_without_a_confirmation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    archive(data={"to": MAIL})
    assert "say --yes" in refusal(f"personal-data erase {MAIL}")
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    assert "Nothing was changed" in refusal(f"personal-data erase {MAIL}")
    assert not Erasure.objects.exists()
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    jobqueue(f"personal-data erase {MAIL}")
    assert tables_with(MAIL) == []


def test_the_value_can_be_read_from_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    archive(data={"to": MAIL})
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{MAIL}\n"))
    assert personal_data("find", "-")["total"] == 1


def test_what_was_erased_is_listed_without_values() -> None:
    assert jobqueue("personal-data").out == "Nothing was erased.\n"
    archive(data={"to": MAIL})
    personal_data("erase", MAIL, "--yes")
    (one,) = personal_data("list")
    assert (one["act"], one["state"]) == ("erase", "done")
    out = jobqueue("personal-data list").out
    assert one["erasure"] in out
    assert MAIL not in out


@pytest.mark.parametrize("words", [["find"], ["find", "a", "b"], ["list", "a"]])
def test_it_takes_one_value(words: list[str]) -> None:
    with pytest.raises(CommandError):
        jobqueue("personal-data", *words)


def test_what_cannot_be_found_is_refused() -> None:
    assert "name the key" in refusal("personal-data find abc")
