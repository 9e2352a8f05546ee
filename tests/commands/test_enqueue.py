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
from django_jobqueue.models import ArchivedJob, JobType, QueuedJob
from tests.commands.conftest import jobqueue, make_archived
from tests.support.rows import queued

pytestmark = pytest.mark.django_db


def refusal(*arguments: str) -> str:
    """What the command says when it refuses; nothing may have been enqueued."""
    with pytest.raises(CommandError) as refused:
        jobqueue("enqueue", *arguments)
    assert not QueuedJob.objects.exists()
    return str(refused.value)


def test_the_id_of_the_new_job_is_printed_and_nothing_else() -> None:
    said = jobqueue("enqueue", "tests.sample.add", "a=1")
    (job,) = queued()
    assert said.out == f"{job.id}\n"
    assert said.err == ""


def test_the_job_says_who_enqueued_it() -> None:
    jobqueue("enqueue", "tests.sample.add", "a=1")
    (job,) = queued()
    assert job.enqueued_by == f"command line ({getpass.getuser()})" == by()


def test_a_long_user_name_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "x" * 500)
    jobqueue("enqueue", "tests.sample.add", "a=1")
    (job,) = queued()
    assert job.enqueued_by == f"command line ({'x' * 130})"


@pytest.mark.parametrize(
    ("words", "data"),
    [
        (["a=1", "b=2"], {"a": 1, "b": 2}),
        (['{"a": 1, "b": 2}'], {"a": 1, "b": 2}),
        (["a=007"], {"a": "007"}),
        (['a="007"'], {"a": "007"}),
        (["a=true", "b=null"], {"a": True, "b": None}),
        (["a=[1, 2]", 'b={"c": 1}'], {"a": [1, 2], "b": {"c": 1}}),
        (["a=x=y", "b="], {"a": "x=y", "b": ""}),
        (["a=NaN", "b=-Infinity"], {"a": "NaN", "b": "-Infinity"}),
        (["a=-5"], {"a": -5}),
    ],
)
def test_data_is_one_object_or_pairs(words: list[str], data: Any) -> None:
    jobqueue("enqueue", "tests.sample.keep", *words)
    (job,) = queued()
    assert job.data == data


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("text=7", "7"),
        ("text=true", "true"),
        ('text="7"', "7"),
        ("perhaps=7", "7"),
        ("perhaps=null", None),
        ("either=7", 7),
        ("either=x", "x"),
        ("number=7", 7),
    ],
)
def test_a_value_is_text_where_the_parameter_wants_one(word: str, value: Any) -> None:
    jobqueue("enqueue", "tests.sample.keep_typed", word)
    (job,) = queued()
    assert list(job.data.values()) == [value]


def test_all_values_of_other_types_are_told_at_once() -> None:
    with pytest.raises(CommandError) as refused:
        jobqueue("enqueue", "tests.sample.keep_typed", '{"number": "x", "either": []}')
    assert str(refused.value) == (
        "tests.sample.jobs.keep_typed(): 'number' must be int, not str. 'either' must "
        "be int | str, not list."
    )


def test_data_may_come_from_the_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"a": 7}\n'))
    jobqueue("enqueue", "tests.sample.add", "--queue", "mail", "-")
    (job,) = queued()
    assert (job.data, job.queue) == ({"a": 7}, "mail")


def test_options_and_data_may_come_in_any_order() -> None:
    jobqueue("enqueue", "tests.sample.add", "a=1", "--priority", "-5", "b=2")
    jobqueue("enqueue", "--queue", "mail", "tests.sample.add", "a=1", "b=2")
    jobqueue("enqueue", "tests.sample.add", "--queue", "mail", "a=1", "b=2")
    assert [job.data for job in queued()] == [{"a": 1, "b": 2}] * 3
    assert [(job.queue, job.priority) for job in queued()] == [
        ("default", -5),
        ("mail", 0),
        ("mail", 0),
    ]


def test_a_job_can_be_due_later_and_expire() -> None:
    jobqueue(
        "enqueue", "tests.sample.add", "a=1", "--run-after", "10m", "--expires-at", "2h"
    )
    (job,) = queued()
    waits = job.run_after - timezone.now()
    assert timedelta(minutes=9) < waits < timedelta(minutes=11)
    lives = job.expires_at - timezone.now()
    assert timedelta(minutes=119) < lives < timedelta(minutes=121)


def test_a_job_can_be_due_at_a_moment() -> None:
    with timezone.override("Europe/Vienna"):
        jobqueue(
            "enqueue", "tests.sample.add", "a=1", "--run-after", "2036-01-02T03:04"
        )
    (job,) = queued()
    assert job.run_after == datetime.fromisoformat("2036-01-02T02:04+00:00")


def test_json_describes_the_job() -> None:
    id = str(uuid4())
    said = jobqueue(
        "enqueue", "tests.sample.add", "a=1", "--format", "json", "--id", id
    )
    assert list(said.json) == [
        "id",
        "job_type",
        "queue",
        "priority",
        "status",
        "run_after",
        "expires_at",
        "created_at",
        "tags",
    ]
    (job,) = queued()
    assert job.id == UUID(said.json["id"]) == UUID(id)
    assert said.json["job_type"] == "tests.sample.add"
    assert said.json["status"] == "queued"
    assert datetime.fromisoformat(said.json["run_after"]) == job.run_after
    assert said.json["expires_at"] is None


def test_the_id_is_printed_even_when_it_is_to_be_quiet() -> None:
    said = jobqueue("enqueue", "tests.sample.add", "a=1", verbosity=0)
    (job,) = queued()
    assert said.out == f"{job.id}\n"


def test_the_same_id_enqueues_one_job() -> None:
    id = str(uuid4())
    for _ in range(2):
        assert (
            jobqueue("enqueue", "tests.sample.add", "a=1", "--id", id).out == id + "\n"
        )
    assert len(queued()) == 1


@pytest.mark.parametrize("status", ["succeeded", "failed", "expired", "cancelled"])
def test_the_id_of_a_job_that_is_over_is_printed(status: str) -> None:
    (id,) = make_archived(status=status)
    said = jobqueue("enqueue", "tests.sample.add", "a=1", "--id", str(id))
    assert (said.out, said.err) == (f"{id}\n", "")
    assert ArchivedJob.objects.count() == 1
    assert queued() == []
    said = jobqueue(
        *("enqueue", "tests.sample.add", "a=1", "--id", str(id), "--format", "json")
    )
    assert said.json["status"] == status


def test_a_text_as_id_is_one_id_among_the_jobs_of_a_type() -> None:
    day = "2026-11-21 ü"
    said = [jobqueue("enqueue", "tests.sample.add", "a=1", "--id", day) for _ in "12"]
    other = jobqueue("enqueue", "tests.sample.keep", "a=1", "--id", day)
    assert said[0] == said[1]
    assert len(queued()) == 2
    namespace = UUID("f4949a55-c19e-55f5-a8fc-45a292001730")  # as it is documented
    assert said[0].out == f"{uuid5(namespace, f'tests.sample.add:{day}')}\n"
    assert other.out != said[0].out


@pytest.mark.parametrize("spelling", ["{}", "job_{}", "{{{}}}", "urn:uuid:{}"])
def test_a_uuid_as_id_is_taken_as_it_is(spelling: str) -> None:
    id = uuid4()
    said = jobqueue("enqueue", "tests.sample.add", "a=1", "--id", spelling.format(id))
    assert said.out == f"{id}\n"


@pytest.mark.parametrize("nothing", ["", "  "])
def test_an_empty_id_is_a_slip(nothing: str) -> None:
    assert refusal("tests.sample.add", "a=1", "--id", nothing) == (
        "--id must not be empty."
    )


def test_the_id_of_a_job_of_another_type_is_refused() -> None:
    (id,) = make_archived()
    assert refusal("tests.sample.keep", "a=1", "--id", str(id)) == (
        f"--id: job {id} is one of the type 'tests.sample.add'."
    )


def test_a_duplicate_is_refused_where_its_type_does_not_say_otherwise() -> None:
    jobqueue("enqueue", "tests.sample.add_alone", "a=1")
    with pytest.raises(CommandError) as refused:
        jobqueue("enqueue", "tests.sample.add_alone", "a=1")
    message = str(refused.value)
    assert message.startswith(f"Job {queued()[0].id} of type 'tests.sample.add_alone'")
    assert message.endswith(
        "Nothing was enqueued. With --on-duplicate return that job is returned instead."
    )
    assert len(queued()) == 1


def test_a_refusal_speaks_of_flags() -> None:
    quarantined = ("enqueue", "tests.sample.add_alone", "a=1")
    jobqueue(*quarantined)
    with pytest.raises(CommandError) as refused:
        jobqueue(*quarantined)
    assert str(refused.value).endswith(
        "Nothing was enqueued. With --on-duplicate return that job is returned instead."
    )
    with pytest.raises(CommandError) as refused:
        jobqueue("enqueue", "tests.sample.add", "a=1", "queue=mail")
    assert str(refused.value) == (
        "tests.sample.jobs.add() has no parameter 'queue'. "
        "It is an option of the job: --queue."
    )


def test_a_job_that_could_never_start_is_refused() -> None:
    when = ("tests.sample.add", "a=1", "--expires-at")
    assert refusal(*when, "2020-01-01T00:00Z").startswith("--expires-at: 20")
    assert refusal(*when, "2020-01-01T00:00Z").endswith(" is past.")
    assert refusal(*when, "1h", "--run-after", "2h").startswith(
        "--expires-at must be later than --run-after: the job would be due at"
    )


@pytest.mark.parametrize("short", ["add", "adda", "fail"])
def test_a_short_name_is_answered_with_the_whole_one(short: str) -> None:
    whole = "tests.sample.fail" if short == "fail" else "tests.sample.add"
    for message in (
        refusal(short),
        refused_by("pause", short),
        refused_by("types", "show", short),
    ):
        assert message.startswith(f"There is no job type '{short}'. Did you mean ")
        assert f"'{whole}'" in message


def refused_by(*words: str) -> str:
    with pytest.raises(CommandError) as refused:
        jobqueue(*words)
    return str(refused.value)


def test_duplicates_among_lines_are_told_in_the_command_line_s_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"a": 1}\n{"a": 1}\n'))
    message = refusal("tests.sample.add_alone", "--lines", "-")
    assert "on_duplicate=" not in message
    assert "--on-duplicate return" in message


@pytest.mark.parametrize(
    "word", ["run_after=10m", "expires_at=10m", "queue=mail", "priority=5", "id=x"]
)
def test_an_option_among_the_data_is_told_as_the_flag_that_it_is(word: str) -> None:
    name = word.partition("=")[0]
    assert refusal("tests.sample.add", "a=1", word) == (
        f"tests.sample.jobs.add() has no parameter {name!r}. It is an option of the "
        f"job: --{name.replace('_', '-')}."
    )


def test_a_queue_that_nobody_names_is_taken_with_a_remark() -> None:
    said = jobqueue("enqueue", "tests.sample.add", "a=1", "--queue", "defualt")
    assert said.err == (
        "No job type, worker or job names the queue 'defualt'. Did you mean "
        "'default'?\n"
    )
    (made,) = queued()
    assert (said.out, made.queue) == (f"{made.id}\n", "defualt")
    again = ("enqueue", "tests.sample.add", "a=1", "--queue", "other", "-v", "0")
    assert jobqueue(*again).err == ""
    assert jobqueue(*again[:-2]).err == ""  # a job is there by now


def test_two_hosts_whose_cron_enqueues_the_same_are_both_well() -> None:
    """The type says on_duplicate="return"."""
    first, second = (
        jobqueue("enqueue", "tests.sample.index", "document=7") for _ in "12"
    )
    assert first == second
    assert (first.out, first.err) == (f"{queued()[0].id}\n", "")
    assert len(queued()) == 1


def test_what_becomes_of_a_duplicate_can_be_said() -> None:
    index = ("enqueue", "tests.sample.index", "document=7")
    quarantined = ("enqueue", "tests.sample.add_alone", "a=1")
    first = jobqueue(*quarantined)
    assert jobqueue(*quarantined, "--on-duplicate", "return") == first
    jobqueue(*index)
    with pytest.raises(CommandError, match="is already queued"):
        jobqueue(*index, "--on-duplicate", "raise")


def test_an_unknown_type_is_answered_with_the_nearest() -> None:
    message = refusal("tests.sample.ad", "a=1")
    assert message.startswith("There is no job type 'tests.sample.ad'. Did you mean ")
    assert "'tests.sample.add'" in message


def test_a_type_whose_handler_is_not_known_here_can_be_enqueued() -> None:
    JobType.objects.create(name="elsewhere.report", queue="reports")
    jobqueue("enqueue", "elsewhere.report", "any=thing")
    (job,) = queued()
    assert (job.job_type_id, job.queue) == ("elsewhere.report", "reports")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["c=1"], "has no parameter 'c'"),
        ([], "is missing 'a'"),
        (["a"], "'a' is no key=value pair. Give one JSON object, or key=value pairs."),
        (["=1"], "'=1' is no key=value pair. Give one JSON object"),
        (["a=1", "a=2"], "'a' is given twice."),
        (["{a: 1}"], "The data is not JSON: Expecting property name"),
        (["[1]"], "The data must be an object, not list. Give one JSON object"),
        (['{"a": NaN}'], "'a' must be int, not float."),
        (["a=1", "--queue", "a b"], "queue must have no space, comma or control"),
        (["a=1", "--priority", "101"], "must be a whole number from -100 to 100"),
        (["a=1", "--priority", "high"], "argument --priority: invalid int value"),
        (["a=1", "--run-after", "soon"], "--run-after: 'soon' is no time. Write"),
        (["a=1", "--expires-at", "never"], "--expires-at: 'never' is no time. Write"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_reason(
    words: list[str], message: str
) -> None:
    assert message in refusal("tests.sample.add", *words)


def test_a_number_that_json_does_not_have_is_refused() -> None:
    assert refusal("tests.sample.keep", '{"a": NaN}') == (
        "data['a'] is nan, which JSON does not have."
    )


def test_data_nested_without_end_is_refused() -> None:
    deep = '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"
    assert refusal("tests.sample.add", deep).startswith("The data is not JSON: ")
