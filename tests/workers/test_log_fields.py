"""Fields of log records: an event that never changes, and what it is about."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from django_jobqueue import logs, operations
from django_jobqueue.domain.log_events import Event
from django_jobqueue.domain.retry_decision import Verb
from django_jobqueue.logs import EVENTS, JsonFormatter, TextFormatter
from tests.crashes.test_kills import children
from tests.docs.pages import pages
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

PAGE = "docs/guides/logs.md"
SECRET = "hunter2"

ENDS = {
    "succeeded": lambda: jobs.add.enqueue(1, 2),
    "failed": lambda: jobs.fail.using(max_attempts=1).enqueue("no stock"),
    "retried": lambda: jobs.fail_often.enqueue(os.devnull),
    "snoozed": lambda: jobs.say.enqueue("snooze"),
    "cancelled": lambda: jobs.say.enqueue("cancel"),
}


def test_the_record_of_an_attempt_says_what_it_was_and_what_came_of_it(
    worker: HandDriven, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "django_jobqueue")
    logs.connect_successes()
    made = {outcome: enqueue() for outcome, enqueue in ENDS.items()}
    worker.work()
    attempts = (r for r in caplog.records if r.name == "django_jobqueue.attempt")
    records = {vars(record)["outcome"]: vars(record) for record in attempts}
    assert set(records) == set(ENDS)
    for outcome, record in records.items():
        job = made[outcome]
        assert record["event"] == f"attempt.{outcome}"
        assert (record["job_id"], record["job_type"]) == (str(job.id), job.job_type)
        assert (record["queue"], record["attempt"]) == ("default", 1)
        assert (record["worker"], record["release"]) == (worker.worker.name, "tests")
        assert min(record["seconds"], record["wait_seconds"]) >= 0
        is_failure = outcome in ("failed", "retried")
        assert ("failure_group" in record) is is_failure
        assert ("error_class" in record) is is_failure


def test_each_verb_has_an_event_of_its_own() -> None:
    assert set(EVENTS) == set(Verb)
    assert len(set(EVENTS.values())) == len(Verb)


def test_an_operator_s_act_is_an_event(
    db: None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "django_jobqueue")
    operations.pause(["mail"], queues=True, reason="the carrier is down", by="anna")
    (record,) = (r for r in caplog.records if r.name == "django_jobqueue.operations")
    assert vars(record)["event"] == "operated"
    assert (vars(record)["verb"], vars(record)["by"]) == ("pause", "anna")


def test_the_guide_lists_each_event_once() -> None:
    table = pages()[PAGE].partition("| event | fields |")[2].partition("\n\n")[0]
    listed = [line.split("`")[1] for line in table.splitlines() if "`" in line]
    assert sorted(listed) == sorted(Event)


def record_of(error: bool = False, **extra: Any) -> logging.LogRecord:
    info = None
    if error:
        try:
            raise ValueError(SECRET)
        except ValueError as raised:
            info = (type(raised), raised, raised.__traceback__)
    record = logging.LogRecord(
        "django_jobqueue.x", logging.ERROR, __file__, 1, "%s\nof two", ("a",), info
    )
    vars(record).update(extra)
    return record


def test_a_json_record_is_one_line_with_all_its_fields_and_no_secrets() -> None:
    text = JsonFormatter().format(
        record_of(event=Event.WORKER_DIED, queues=("mail",), odd={1}, lone="\ud800")
    )
    assert "\n" not in text
    entry = json.loads(text.encode())
    assert datetime.fromisoformat(entry.pop("time")).tzinfo is not None
    assert (entry.pop("process"), bool(entry.pop("lone"))) == (os.getpid(), True)
    assert entry == {
        "message": "a\nof two",
        "event": "worker.died",
        "level": "ERROR",
        "logger": "django_jobqueue.x",
        "queues": ["mail"],
        "odd": "{1}",
    }
    plain = json.loads(JsonFormatter().format(record_of(error=True)))
    assert f"ValueError: {SECRET}" in plain["exception"]
    masked = record_of(error=True, exc_text="ValueError: ***")
    assert json.loads(JsonFormatter().format(masked))["exception"] == "ValueError: ***"


def test_a_line_of_text_begins_with_a_time_and_its_offset() -> None:
    line = TextFormatter().format(record_of())
    assert datetime.fromisoformat(line.split()[0]).tzinfo is not None
    assert " ERROR a" in line


@pytest.mark.processes
def test_processes_have_names_and_write_json_and_successes_when_asked_to(
    runworkers: Callable[..., RunWorkers], journal: str
) -> None:
    run = runworkers("--log-format", "json", "--log-successes", "true")
    (worker,) = run.started()
    done = jobs.write.enqueue(journal, "here")
    jobs.fail.using(max_attempts=1).enqueue("no stock")
    eventually(lambda: len(archived()) == 2, what=lambda: run.output)
    names = {name_of(pid) for pid in [run.process.pid, *children(run.process.pid)]}
    assert names == {"jq:supervisor", "jq:maintenance", "jq:worker"}
    assert name_of(worker) == "jq:worker"
    assert run.stop() == 0

    entries = [json.loads(line) for line in run.output.splitlines() if line[0] == "{"]
    events = [entry.get("event") for entry in entries]
    assert (events[0], events[-1]) == ("host.started", "host.stopped")
    for event in ("worker.started", "worker.ended", "host.stopping", "attempt.failed"):
        assert event in events
    success = entries[events.index("attempt.succeeded")]
    assert (success["job_id"], success["level"]) == (str(done.id), "INFO")


def test_whoever_calls_runworkers_has_its_name_again(transactional_db: None) -> None:
    before = name_of(os.getpid())
    call_command("runworkers", "--drain")
    assert name_of(os.getpid()) == before


def name_of(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().rstrip("\n")
