"""``jobqueue run``: a handler in the foreground, and nothing stays of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.management.base import CommandError
from django.db import transaction

from django_jobqueue import Cancel, Context, Fail, Retry, Snooze, job
from django_jobqueue.enqueueing.by_name import enqueue
from django_jobqueue.management.jobqueue import run
from django_jobqueue.models import AuditEntry, JobType, Queue, QueuedJob
from tests.commands.conftest import Terminal, jobqueue, make_archived, refusal
from tests.sample import jobs

pytestmark = pytest.mark.django_db

NAME = "tests.run"
called: list[Any] = []


def do(context: Context, word: str, token: str) -> str:
    """Write a row, enqueue a job, and do what the word says."""
    called.append((word, context.id, context.attempt))
    with transaction.atomic(durable=True):
        Queue.objects.create(name=f"by-{word}")
    jobs.add.enqueue(1)
    transaction.on_commit(lambda: called.append("committed"))
    context.log(f"token {token}")
    print("printed")
    ends = {
        "retry": Retry("again", after=60),
        "snooze": Snooze(30, "later"),
        "fail": Fail("no use"),
        "cancel": Cancel("not wanted"),
        "raise": ValueError(f"the token is {token}"),
    }
    if word in ends:
        raise ends[word]
    return f"did {word} {token}"


@pytest.fixture(autouse=True)
def _declared(db: None, _handlers_of_a_test_are_gone_after_it: None) -> None:
    called.clear()

    @job(name=NAME, sensitive=["token"], takes_context=True)
    def work(context: Context, word: str, token: str = "") -> str:
        return do(context, word, token)

    @job(name=f"{NAME}.once", delivery="at_most_once")
    def once_only(a: int) -> int:
        return a

    JobType.objects.create(name=NAME, sensitive=["token"])
    once = {"delivery": "at_most_once", "max_attempts": 1}
    JobType.objects.create(name=f"{NAME}.once", **once)


def made(word: str, **data: Any) -> QueuedJob:
    id = enqueue(NAME, {"word": word, **data}).id
    return QueuedJob.objects.get(pk=id)


def rows() -> tuple[list[Any], int]:
    return list(QueuedJob.objects.order_by("pk").values()), Queue.objects.count()


@pytest.mark.parametrize(
    ("word", "outcome", "wait", "code"),
    [
        ("well", "succeed", 0, 0),
        ("retry", "retry", 60, 1),
        ("snooze", "snooze", 30, 1),
        ("fail", "fail", 0, 1),
        ("cancel", "cancel", 0, 1),
        ("raise", "retry", None, 1),
    ],
)
def test_whatever_the_handler_does_nothing_stays(
    word: str, outcome: str, wait: int | None, code: int
) -> None:
    one = made(word, token="hunter2-secret")
    before, stream = rows(), Terminal()
    arguments = ("run", str(one.pk), "--yes", "--format", "json")
    if code:
        with pytest.raises(CommandError) as refused:
            jobqueue(*arguments, stdout=stream)
        assert refused.value.returncode == 1
    else:
        jobqueue(*arguments, stdout=stream)
    said = json.loads(stream.getvalue())
    assert (said["outcome"], said["committed"]) == (outcome, False)
    assert wait is None or said["wait"] == wait
    assert rows() == before
    assert called == [(word, one.pk, 1)]  # on_commit was not called
    assert "hunter2" not in stream.getvalue()
    assert said["lines"][0]["text"].startswith("token ")
    assert ("ValueError" in said["traceback"]) == (word == "raise")
    entry = AuditEntry.objects.get()
    assert (entry.verb, entry.about) == ("run here", [str(one.pk), NAME])


def test_with_commit_it_stays_and_other_data_are_taken() -> None:
    one = made("well")
    said = jobqueue(f"""run {one.pk} --yes --commit --data '{{"word": "other"}}'""")
    assert Queue.objects.get().name == "by-other"
    assert QueuedJob.objects.count() == 2
    assert "did other" in said.out
    assert "was committed." in said.out
    one.refresh_from_db()
    assert (one.status, one.attempts, one.data) == ("queued", 0, {"word": "well"})


def test_an_archived_job_and_an_async_one_are_run() -> None:
    (id,) = make_archived(attempts=3)
    assert "It succeeded." in jobqueue(f"run {id} --yes").out
    waiting = jobs.aadd.enqueue(1, 2)
    assert "Result\n3\n" in jobqueue(f"run {waiting.id} --yes").out


@pytest.mark.parametrize(
    ("answers", "debug", "message"),
    [
        (None, True, "No terminal to confirm on; pass --yes."),
        ("n\n", True, "Nothing was run."),
        ("y\nn\n", False, "Nothing was run."),
        ("y\n", True, ""),
        ("y\ny\n", False, ""),
    ],
)
def test_it_asks_and_twice_where_debug_is_off(
    answers: str | None,
    debug: bool,
    message: str,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.DEBUG = debug
    if answers is not None:
        monkeypatch.setattr("sys.stdin", Terminal(answers))
    one = made("well")
    if message:
        assert refusal(f"run {one.pk}") == message
        assert called == []
        return
    said = jobqueue(f"run {one.pk}")
    assert "mail and requests are really sent" in said.err
    assert len(called) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "[1]"], "The data must be an object, not list."),
        (["--data", '{"wrod": "x"}'], "has no parameter 'wrod'"),
        (["--pdb"], "--pdb needs a terminal."),
        (["--commit", "--rollback"], "not allowed with argument"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_runs(
    arguments: list[str], message: str
) -> None:
    assert message in refusal("run", str(made("well").pk), "--yes", *arguments)
    assert called == []
    assert not AuditEntry.objects.exists()


def test_a_job_of_an_at_most_once_type_is_run_only_if_that_is_said() -> None:
    id = str(enqueue(f"{NAME}.once", {"a": 1}).id)
    assert "a worker may have started it" in refusal(f"run {id} --yes")
    assert "It succeeded." in jobqueue(f"run {id} --yes --at-most-once").out
    JobType.objects.create(name="shop.elsewhere")
    (other,) = make_archived(job_type_id="shop.elsewhere")
    assert "No handler of 'shop.elsewhere'" in refusal(f"run {other} --yes")


def test_pdb_stops_where_the_handler_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[str] = []

    def post_mortem(traceback: Any) -> None:
        while traceback.tb_next:
            traceback = traceback.tb_next
        stopped.append(traceback.tb_frame.f_code.co_name)

    monkeypatch.setattr(run.pdb, "post_mortem", post_mortem)
    monkeypatch.setattr("sys.stdin", Terminal())
    assert "A worker would try again after" in refusal(
        f"run {made('raise').pk} --yes --pdb"
    )
    assert stopped == ["do"]
