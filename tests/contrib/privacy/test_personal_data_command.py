"""``jobqueue personal-data``: find, erase, delete, and the record of it."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from django_jobqueue.contrib.privacy.models import Erasure
from django_jobqueue.contrib.privacy.personal_value import ERASED
from django_jobqueue.models import ArchivedJob, AuditEntry, QueuedJob
from tests.commands.conftest import Terminal, jobqueue, not_refused, refusal
from tests.contrib.privacy.planted import tables_with
from tests.store.rows import ago, archive, make

pytestmark = pytest.mark.django_db

MAIL = "anna@example.com"


def personal_data(*arguments: str) -> Any:
    return jobqueue("personal-data", *arguments, "--format", "json").json


@pytest.mark.dear
def test_it_finds_and_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    id = archive(data={"to": MAIL})
    found = personal_data("find", MAIL)
    assert found["rows"] == {"archived": 1}
    assert found["first"] == {"archived": [str(id)]}
    assert (found["total"], found["erasure"], found["earlier"]) == (1, None, [])
    out = jobqueue(f"personal-data find {MAIL}").out
    assert "archived  1" in out.replace("     ", "  ")
    assert "holds the value" in out
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{MAIL}\n"))
    assert personal_data("find", "-")["total"] == 1
    assert not Erasure.objects.exists()
    assert tables_with(MAIL) == ["jobqueue_archivedjob"]


@pytest.mark.dear
def test_it_erases_and_says_what_it_did() -> None:
    assert jobqueue("personal-data").out == "Nothing was erased.\n"
    id = archive(data={"to": MAIL})
    erased = personal_data("erase", MAIL, "--yes", "--reason", f"by {MAIL}")
    assert (erased["act"], erased["state"]) == ("erase", "done")
    assert erased["changed"] == {"archived": 1}
    assert erased["reason"] == f"by {ERASED}"
    assert ArchivedJob.objects.get(pk=id).data == {"to": ERASED}
    assert AuditEntry.objects.latest("id").by.startswith("command line")
    (before,) = personal_data("find", MAIL)["earlier"]
    assert before["erasure"] == erased["erasure"]
    (one,) = personal_data("list")
    assert (one["act"], one["state"]) == ("erase", "done")
    out = jobqueue("personal-data list").out
    assert one["erasure"] in out
    assert MAIL not in out
    assert tables_with(MAIL) == []


@pytest.mark.dear
def test_it_deletes_and_with_a_key_it_takes_short_values() -> None:
    archive(data={"to": MAIL})
    archive(data={"customer": {"id": 7}, "seats": 7})
    assert personal_data("delete", MAIL, "--yes")["changed"] == {"archived": 1}
    personal_data("erase", "7", "--key", "customer.id", "--yes")
    assert ArchivedJob.objects.get().data == {"customer": {"id": ERASED}, "seats": 7}


def test_running_jobs_are_left_to_a_worker() -> None:
    make(data={"to": MAIL}, status="running", started_at=ago(5), attempts=1)
    out = jobqueue(f"personal-data erase {MAIL} --yes").out
    assert "Left: 1 running job. A worker continues" in out
    row = Erasure.objects.get()
    assert (row.state, row.value) == ("running", MAIL)
    assert QueuedJob.objects.get(pk=row.job_id).data == {"erasure": str(row.pk)}


@pytest.mark.dear
def test_nothing_is_erased_without_a_confirmation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    archive(data={"to": MAIL})
    assert "pass --yes" in refusal(f"personal-data erase {MAIL}")
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    assert "Nothing was changed" in refusal(f"personal-data erase {MAIL}")
    assert not Erasure.objects.exists()
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    jobqueue(f"personal-data erase {MAIL}")
    assert tables_with(MAIL) == []


def test_what_makes_no_sense_is_refused() -> None:
    reasons = {"find": "", "find a b": "", "list a": "", "find abc": "name the key"}
    assert not_refused("personal-data", reasons) == {}
