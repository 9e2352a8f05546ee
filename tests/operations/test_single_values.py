"""A function that takes several takes one as well, or says that it wants several.

A text is an iterable: ``pause("shop.send")`` would pause the job types "s", "h", "o" …
So would a single id be no iterable at all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

import django_jobqueue
from django_jobqueue import InvalidArguments, operations, progress, testing
from django_jobqueue.contrib.http import token_operations
from django_jobqueue.domain.states import ArchivedStatus
from django_jobqueue.store.control.prune import Rule
from tests.sample import jobs
from tests.support.undone import check_each, undone

pytestmark = pytest.mark.django_db

ID = uuid4()
SINGLES: dict[str, list[Any]] = {
    "ids": [ID, str(ID), f"job_{ID}"],
    "fingerprints": [ID, str(ID)],
    "names": ["tests.sample.add", jobs.add],
    "rules": [Rule(status=ArchivedStatus.FAILED, keep=1e9)],
    "queue": ["mail"],
    "queues": ["mail"],
}
OF_WORKERS = ("ask_workers", "request_stack_dumps")
ARGUMENTS: dict[str, dict[str, Any]] = {  # besides the several
    "allow_attempts": {"max_attempts": 9},
    "ask_hosts": {"what": "drain"},
    "ask_workers": {"what": "drain"},
    "assign": {"assignee": "anna"},
    "fail": {"reason": "why"},
    "note": {"text": "why"},
    "scale_hosts": {"ids": [ID], "queues": ["mail"]},
}
# Tried below, the hosts' queues in test_hosts.py, tokens in http/test_callers.py.
REFUSES = {
    *(("create_token", name) for name in ("scopes", "job_types", "queues")),
    ("enqueue_many", "calls"),
    ("scale_hosts", "queues"),
    ("worker", "queues"),
}
SEVERAL = ("Iterable", "Sequence", "Collection", "Ids", "Names", "Fingerprints")


def public() -> Iterator[Callable[..., Any]]:
    """Every public function, but for async twins, which call theirs."""
    for room in (
        django_jobqueue,
        operations,
        operations.bulk,
        token_operations,
        testing,
        progress,
    ):
        for name in getattr(room, "__all__", dir(room)):
            found = getattr(room, name)
            is_own = hasattr(room, "__all__") or (
                getattr(found, "__module__", "") == room.__name__
            )
            if is_own and inspect.isfunction(found) and name[0] != "_":
                yield found


def several_of(function: Callable[..., Any]) -> Iterator[str]:
    """The names of the parameters that take several."""
    for parameter in inspect.signature(function).parameters.values():
        annotation = str(parameter.annotation)
        if any(word in annotation for word in SEVERAL):
            yield parameter.name


TAKES_SEVERAL: dict[tuple[str, str], Callable[..., Any]] = {
    (function.__name__, name): function
    for function in public()
    if not inspect.iscoroutinefunction(function)
    for name in several_of(function)
}


def required_of(function: Callable[..., Any]) -> set[str]:
    """The parameters without a default."""
    return {
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is inspect.Parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }


def outcome(function: Callable[..., Any], **arguments: Any) -> Any:
    """What the call returns, or raises."""
    try:
        found = function(**arguments)
        return list(found) if inspect.isgenerator(found) else found
    except Exception as error:
        return str(error)


def check_one(name: str, parameter: str) -> None:
    function = TAKES_SEVERAL[name, parameter]
    assert parameter in SINGLES, f"add single values of {parameter!r} to SINGLES"
    singles = [7] if name in OF_WORKERS else SINGLES[parameter]
    besides = {k: v for k, v in ARGUMENTS.get(name, {}).items() if k != parameter}
    needs = required_of(function) - {parameter, *besides}
    assert not needs, f"{name}() also needs {needs}: add values to ARGUMENTS"
    for single in singles:
        by_itself = outcome(function, **{parameter: single}, **besides)
        among = outcome(function, **{parameter: [single]}, **besides)
        assert repr(by_itself) == repr(among), (
            f"{name}({parameter}={single!r}) must do the same as with a list: call "
            f"several() of domain/ids.py, or add {name!r} to REFUSES with its own test."
        )


def test_one_is_taken_as_one_of_several() -> None:
    cases = sorted({*TAKES_SEVERAL} - REFUSES)
    check_each(undone()(check_one), cases, least=20)


def test_the_functions_that_take_several_are_known() -> None:
    """Else a function whose annotation this file does not understand is not tried."""
    known = {
        *("cancel", "run_now", "reschedule", "release", "fail", "allow_attempts"),
        *("replay_many", "prune_jobs", "prune", "pause", "resume"),
        *("resolve", "ignore", "reopen", "assign", "note", "revoke_tokens"),
        *("ask_workers", "request_stack_dumps", "progress_of_many", "drain"),
        *(name for name, _ in REFUSES),
    }
    those = {name for name, _ in TAKES_SEVERAL}
    assert known - those == set(), "gone, or annotated without a word of SEVERAL"


def test_those_that_take_one_refuse_several_and_those_that_want_a_list_say_so() -> None:
    for call in (operations.get_job, operations.replay, progress.progress_of):
        with pytest.raises(InvalidArguments, match="not a job id"):
            call([ID])  # type: ignore[operator]
    with pytest.raises(InvalidArguments, match="A name must be a string"):
        operations.override(["a", "b"], priority=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"queues=\['mail'\]"):
        django_jobqueue.worker(queues="mail")
    made = jobs.leak.enqueue(token="hunter2")
    with pytest.raises(InvalidArguments) as caught:
        operations.cancel(made)  # type: ignore[arg-type]
    assert str(caught.value) == "A Job is not a job id; pass its id."
