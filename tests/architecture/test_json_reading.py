"""JSON that may come from a row is read by ``text/json_reading.py`` alone."""

from __future__ import annotations

from tests.architecture.source import modules

# Every other place that parses JSON, and whose text it is.
ELSEWHERE = {
    "admin/jobs/argument_fields.py": "a form",
    "admin/jobs/data_changes.py": "a form",
    "admin/lists/counts.py": "a plan of the server",
    "admin/lists/positions.py": "an address",
    "admin/types/overrides.py": "a form",
    "conf/alert_channels.py": "a setting",
    "domain/arguments.py": "strict, for attempts, which fail",
    "domain/followers.py": "what an enqueue wrote in this process",
    "contrib/privacy/personal_value.py": "keeps numbers as they are written",
    "enqueueing/stored_options.py": "what an enqueue wrote in this process",
    "execution/immediate.py": "what an enqueue wrote in this process",
    "host/maintenance/maintenance_process.py": "a pipe of the supervisor",
    "contrib/http/strict_json.py": "a request",
    "contrib/importing/celery_beat.py": "another app's row, with its own answer",
    "management/jobqueue/inputs.py": "a command line",
    "observers.py": "a trace, below the reader; an error is none",
    "contrib/remote/answers.py": "an answer of an endpoint",
    "store/selection.py": "a number of a search",
    "text/json_reading.py": "the reader",
    "workers/unfinished_jobs_dump.py": "a file of this host",
}
# Whoever reads strictly, since an error there ends one attempt.
STRICT = {
    "backends/task_runner.py",
    "execution/attempt.py",
    "execution/attempt_outcome.py",
    "execution/immediate.py",
    "management/jobqueue/run.py",
    "contrib/remote/held_attempts.py",
    "store/queue/insert.py",
    "store/queue/insert_replace.py",
    "testing/performing.py",
}


def test_json_of_rows_has_one_reader() -> None:
    parsing, strict = set(), set()
    for module in modules():
        names = {name for name, _call in module.calls}
        if names & {"json.loads", "json.JSONDecoder"}:
            parsing.add(module.path)
        if "from_json" in names:
            strict.add(module.path)
    assert parsing == ELSEWHERE.keys()
    assert strict == STRICT


def test_a_model_has_no_field_that_raises_when_it_is_read() -> None:
    guilty = [
        module.path
        for module in modules()
        if module.path.startswith("models/")
        for name, _call in module.calls
        if name == "models.JSONField"
    ]
    assert guilty == []
