"""``jobqueue enqueue``."""

from __future__ import annotations

import getpass
import io
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4, uuid5

import pytest
from django.core.management.base import CommandError
from django.utils import timezone

from django_jobqueue.management.jobqueue.subcommand import by
from django_jobqueue.models import ArchivedJob, QueuedJob
from tests.commands.conftest import Said, jobqueue, make_archived, not_refused, refusal
from tests.support.rows import queued

pytestmark = pytest.mark.django_db
ADD = "enqueue tests.sample.add a=1"
ALONE = "enqueue tests.sample.add_alone a=1"


def made(*words: str) -> QueuedJob:
    said = jobqueue(*words)
    (job,) = queued()
    assert said == Said(f"{job.id}\n", "")
    return job


def test_the_job_says_who_enqueued_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert made(ADD).enqueued_by == f"command line ({getpass.getuser()})" == by()
    monkeypatch.setenv("LOGNAME", "x" * 500)
    jobqueue(ADD)
    assert queued()[1].enqueued_by == f"command line ({'x' * 130})"


DATA: list[tuple[list[str], Any]] = [
    (["a=1", "b=2"], {"a": 1, "b": 2}),
    (['{"a": 1, "b": 2}'], {"a": 1, "b": 2}),
    (["a=007"], {"a": "007"}),
    (['a="007"'], {"a": "007"}),
    (["a=true", "b=null"], {"a": True, "b": None}),
    (["a=[1, 2]", 'b={"c": 1}'], {"a": [1, 2], "b": {"c": 1}}),
    (["a=x=y", "b="], {"a": "x=y", "b": ""}),
    (["a=NaN", "b=-Infinity"], {"a": "NaN", "b": "-Infinity"}),
    (["a=-5"], {"a": -5}),
]


def test_data_is_one_object_or_pairs() -> None:
    for words, _ in DATA:
        jobqueue("enqueue", "tests.sample.keep", *words)
    assert [job.data for job in queued()] == [data for _, data in DATA]


TYPED: dict[str, Any] = {
    "text=7": "7",
    "text=true": "true",
    'text="7"': "7",
    "perhaps=7": "7",
    "perhaps=null": None,
    "either=7": 7,
    "either=x": "x",
    "number=7": 7,
}


def test_a_value_is_text_where_the_parameter_wants_one() -> None:
    for word in TYPED:
        jobqueue("enqueue", "tests.sample.keep_typed", word)
    values = [value for job in queued() for value in job.data.values()]
    assert dict(zip(TYPED, values, strict=True)) == TYPED


def test_data_may_come_from_the_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"a": 7}\n'))
    job = made("enqueue tests.sample.add --queue default -")
    assert (job.data, job.queue) == ({"a": 7}, "default")


def test_options_and_data_may_come_in_any_order() -> None:
    jobqueue("enqueue tests.sample.add a=1 --priority -5 b=2")
    jobqueue("enqueue --queue mail tests.sample.add a=1 b=2")
    jobqueue("enqueue tests.sample.add --queue mail a=1 b=2")
    assert [job.data for job in queued()] == [{"a": 1, "b": 2}] * 3
    assert [(job.queue, job.priority) for job in queued()] == [
        ("default", -5),
        ("mail", 0),
        ("mail", 0),
    ]


def test_a_job_can_be_due_later_and_expire() -> None:
    job = made(f"{ADD} --run-after 10m --expires-at 2h")
    waits = job.run_after - timezone.now()
    assert timedelta(minutes=9) < waits < timedelta(minutes=11)
    lives = job.expires_at - timezone.now()
    assert timedelta(minutes=119) < lives < timedelta(minutes=121)


def test_json_describes_the_job() -> None:
    id = str(uuid4())
    said = jobqueue(f"{ADD} --format json --id {id}").json
    keys = "id job_type queue priority status run_after expires_at created_at tags"
    assert list(said) == keys.split()
    (job,) = queued()
    assert job.id == UUID(said["id"]) == UUID(id)
    assert (said["job_type"], said["status"]) == ("tests.sample.add", "queued")
    assert datetime.fromisoformat(said["run_after"]) == job.run_after
    assert said["expires_at"] is None


@pytest.mark.parametrize("spelling", ["{}", "job_{}", "{{{}}}", "urn:uuid:{}"])
def test_the_same_id_enqueues_one_job_however_it_is_spelled(spelling: str) -> None:
    id = uuid4()
    for _ in range(2):
        assert jobqueue(f"{ADD} --id {spelling.format(id)}").out == f"{id}\n"
    assert [job.id for job in queued()] == [id]


def test_the_id_of_a_job_that_is_over_is_printed() -> None:
    for status in ("succeeded", "failed", "expired", "cancelled"):
        (id,) = make_archived(status=status)
        assert jobqueue(f"{ADD} --id {id}") == Said(f"{id}\n", "")
        said = jobqueue(f"{ADD} --id {id} --format json")
        assert said.json["status"] == status
    assert ArchivedJob.objects.count() == 4
    assert queued() == []


def test_a_text_as_id_is_one_id_among_the_jobs_of_a_type() -> None:
    day = "2026-11-21 ü"
    said = [jobqueue(f"{ADD} --id '{day}'") for _ in "12"]
    other = jobqueue(f"enqueue tests.sample.keep a=1 --id '{day}'")
    assert said[0] == said[1]
    assert len(queued()) == 2
    namespace = UUID("f4949a55-c19e-55f5-a8fc-45a292001730")  # as it is documented
    assert said[0].out == f"{uuid5(namespace, f'tests.sample.add:{day}')}\n"
    assert other.out != said[0].out


def test_a_duplicate_is_refused_where_its_type_does_not_say_otherwise() -> None:
    first = jobqueue(ALONE)
    message = refusal(ALONE)
    assert message.startswith(f"Job {queued()[0].id} of type 'tests.sample.add_alone'")
    assert message.endswith(
        "Nothing was enqueued. With --on-duplicate return that job is returned instead."
    )
    assert jobqueue(f"{ALONE} --on-duplicate return") == first
    assert len(queued()) == 1


def test_duplicates_among_lines_are_told_in_the_command_line_s_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"a": 1}\n{"a": 1}\n'))
    message = refusal("enqueue tests.sample.add_alone --lines -")
    assert "on_duplicate=" not in message
    assert "--on-duplicate return" in message
    assert not QueuedJob.objects.exists()


@pytest.mark.parametrize("short", ["add", "adda", "fail"])
def test_a_short_name_is_answered_with_the_whole_one(short: str) -> None:
    whole = "tests.sample.fail" if short == "fail" else "tests.sample.add"
    for command in ("enqueue", "pause", "types show"):
        message = refusal(f"{command} {short}")
        assert message.startswith(f"There is no job type '{short}'. Did you mean ")
        assert f"'{whole}'" in message


def test_a_queue_that_nobody_names_is_taken_with_a_remark() -> None:
    said = jobqueue(f"{ADD} --queue defualt")
    assert said.err == (
        "No job type, worker or job names the queue 'defualt'. Did you mean "
        "'default'?\n"
    )
    (job,) = queued()
    assert (said.out, job.queue) == (f"{job.id}\n", "defualt")
    assert jobqueue(f"{ADD} --queue other -v 0").err == ""
    assert jobqueue(f"{ADD} --queue other").err == ""  # a job is there by now


def test_what_makes_no_sense_is_refused_with_a_reason() -> None:
    (other,) = make_archived(job_type_id="tests.sample.keep")
    reasons = {
        "a=1 c=1": "has no parameter 'c'",
        "": "is missing 'a'",
        "a": "'a' is not a key=value pair. Give one JSON object, or key=value pairs.",
        "=1": "'=1' is not a key=value pair. Give one JSON object",
        "a=1 a=2": "'a' is given twice.",
        "'{a: 1}'": "The data is not JSON: Expecting property name",
        "[1]": "The data must be an object, not list. Give one JSON object",
        """'{"a": NaN}'""": "'a' must be int, not float.",
        "a=1 --queue 'a b'": "queue must have no space, comma or control",
        "a=1 --priority 101": "must be a whole number from -100 to 100",
        "a=1 --priority high": "argument --priority: invalid int value",
        "a=1 --run-after soon": "--run-after: 'soon' is not a time. Write",
        "a=1 --expires-at never": "--expires-at: 'never' is not a time. Write",
        "a=1 --expires-at 2020-01-01T00:00Z": "--expires-at: 2020-01-01 00:00:00 is pa",
        "a=1 --expires-at 1h --run-after 2h": "--expires-at must be later than "
        "--run-after: the job would be due at",
        "a=1 --id ''": "--id must not be empty.",
        "a=1 --id '  '": "--id must not be empty.",
        f"a=1 --id {other}": f"--id: job {other} is one of the type",
    }
    for option in ("run_after", "expires_at", "queue", "priority", "id"):
        reasons[f"a=1 {option}=10m"] = (
            f"tests.sample.jobs.add() has no parameter {option!r}. It is an option of "
            f"the job: --{option.replace('_', '-')}."
        )
    assert not_refused("enqueue tests.sample.add", reasons) == {}
    both = """enqueue tests.sample.keep_typed '{"number": "x", "either": []}'"""
    assert refusal(both) == (
        "tests.sample.jobs.keep_typed(): 'number' must be int, not str. 'either' must "
        "be int | str, not list."
    )
    assert refusal("""enqueue tests.sample.keep '{"a": NaN}'""") == (
        "data['a'] is nan, which JSON does not have."
    )
    deep = '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"
    with pytest.raises(CommandError, match="^The data is not JSON: "):
        jobqueue("enqueue", "tests.sample.add", deep)
    assert not QueuedJob.objects.exists()
