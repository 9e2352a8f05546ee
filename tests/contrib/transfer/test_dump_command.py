"""``jobqueue dump`` and ``load``: jobs go out, and come in as they were."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management.base import CommandError

from django_jobqueue.models import ArchivedJob, AuditEntry, JobType, QueuedJob
from django_jobqueue.text.redaction import MASK
from tests.admin.scene import ADD, LEAK, SECRET, build
from tests.commands.conftest import jobqueue, make_archived, refusal
from tests.sample import jobs

pytestmark = pytest.mark.django_db

CLAIM = {
    *("status", "fence", "worker_id", "quarantined", "cancel_requested_at"),
    *("cancel_reason", "started_at", "awaited", "announce"),
}


def lines(*arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in jobqueue("dump", *arguments).out.splitlines()]


def load(values: list[dict[str, Any]], path: Path, *arguments: str) -> dict[str, Any]:
    path.write_text("".join(json.dumps(value) + "\n\n" for value in values))
    said = jobqueue("load", str(path), "--format", "json", *arguments).json
    assert isinstance(said, dict)
    return said


def test_jobs_come_back_with_every_column_but_the_claim(tmp_path: Path) -> None:
    rows = build()
    QueuedJob.objects.filter(job_type=ADD).update(data={"a": 1})  # which fit
    unusual = jobs.add.using(
        queue="mail", priority=7, tags=["vip"], timeout=90, expires_in=3600
    ).enqueue(1, b=2)
    before = {row["id"]: row for row in QueuedJob.objects.values()}
    dumped = lines("--secrets", "--yes")
    assert {line["id"] for line in dumped} == {str(id) for id in before}
    assert dumped[0].keys() - {"v"} == {
        {"job_type_id": "job_type"}.get(name, name)
        for name in before[unusual.id].keys() - CLAIM
    }
    QueuedJob.objects.all().delete()

    assert load(dumped, tmp_path / "a")["loaded"] == len(before)
    after = {row["id"]: row for row in QueuedJob.objects.values()}
    for id, row in before.items():
        attempts = row["attempts"] - (row["status"] == "running")
        wanted = {**row, "attempts": attempts}
        differ = {n for n in wanted if after[id][n] != wanted[n]}
        assert differ <= CLAIM
        assert after[id]["status"] == "queued"
        assert after[id]["fence"] == min(attempts, 1)  # it was started before
    assert rows.queued["paused"] in after
    verbs = set(AuditEntry.objects.values_list("verb", flat=True))
    assert verbs == {"dump secrets", "load"}


def test_secrets_are_masked_and_what_was_masked_is_not_loaded(tmp_path: Path) -> None:
    build()
    said = jobqueue(f"dump --type {LEAK}")
    assert SECRET not in said.out
    assert said.err == "1 job.\n"
    with pytest.raises(CommandError, match="Line 1: its secrets are masked"):
        load(lines("--type", LEAK), tmp_path / "a")
    JobType.objects.filter(name=jobs.write_keyed.name).update(sensitive=["key"])
    jobs.write_keyed.using(tags=["a", "of DE8937"]).enqueue("j", "DE8937")
    (keyed,) = lines("--type", jobs.write_keyed.name)
    assert "DE8937" not in json.dumps(keyed)
    assert keyed["limit_key"] == f"{jobs.write_keyed.name} {MASK}"
    assert "Say --yes" in refusal("dump --secrets")
    assert not AuditEntry.objects.exists()


def test_jobs_that_are_there_are_left_out_or_refuse_all(tmp_path: Path) -> None:
    one, two, three = (jobs.add.enqueue(i) for i in range(3))
    dumped = lines()
    QueuedJob.objects.filter(pk__in=[two.id, three.id]).delete()
    ArchivedJob.objects.create(id=three.id, job_type_id=ADD, status="failed")
    with pytest.raises(CommandError, match="2 of 3 jobs are there already"):
        load(dumped, tmp_path / "a", "--on-conflict", "fail")
    assert QueuedJob.objects.count() == 1
    said = load(dumped, tmp_path / "a", "--dry-run")
    assert said == {"loaded": 3, "left_out": 0, "dry_run": True}
    assert load(dumped, tmp_path / "a")["left_out"] == 2
    assert set(QueuedJob.objects.values_list("pk", flat=True)) == {one.id, two.id}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"v": 2}, "Line 2: 'v' must be 1"),
        ({"id": "x"}, "badly formed hexadecimal UUID"),
        ({"data": [1]}, "data must be an object."),
        ({"data": {"c": 1}}, "has no parameter 'c'"),
        ({"priority": 101}, "priority must be a whole number from -100"),
        ({"priority": "1"}, "priority must be a whole number."),
        ({"queue": "a b"}, "queue must have no space"),
        ({"run_after": "soon"}, "Invalid isoformat string"),
        ({"run_after": "2026-11-20T10:00"}, "must have an offset"),
        ({"run_after": "0001-01-01T00:00Z"}, "run_after must be from 0001-01-03"),
        ({"expires_at": "9999-12-31T00:00Z"}, "expires_at must be from 0001-01-03"),
        ({"run_after": None}, "run_after must be given"),
        ({"attempts": -1}, "must not be negative"),
        ({"colour": 1}, "a job has no colour."),
        ({"job_type": "tests.sample.ad"}, "There is no job type 'tests.sample.ad'."),
        (
            {"followers": {"on_success": ["gone.away"]}},
            "There is no job type 'gone.away'.",
        ),
        ({"timeout": "soon"}, "Nothing was loaded: invalid input syntax"),
    ],
)
def test_a_line_that_cannot_be_is_explained_and_nothing_is_loaded(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    jobs.add.enqueue(1)
    (line,) = lines()
    with pytest.raises(CommandError) as refused:
        load([{**line, "id": str(uuid4())}, {**line, **change}], tmp_path / "a")
    if "Line 2" in message or not message.startswith(("There", "Nothing")):
        assert str(refused.value).startswith("Line 3: ")
    assert message.removeprefix("Line 2: ") in str(refused.value)
    assert QueuedJob.objects.count() == 1


def test_it_reads_standard_input_and_names_a_file_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    JobType.objects.get(pk="tests.sample.add")
    make_archived()
    jobs.add.enqueue(1)
    text = jobqueue("dump --where add").out
    QueuedJob.objects.all().delete()
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert jobqueue("load -").out == "1 job was loaded.\n"
    assert "'no.such' cannot be read" in refusal("load no.such")
