"""The registry: which function does the jobs of which type, and under what name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from django_jobqueue import Handler
from django_jobqueue.domain.arguments import Parameters
from django_jobqueue.domain.policy import Policy, name_problem
from django_jobqueue.domain.registry import Declaration, Registry, registry
from django_jobqueue.enqueueing.handler_functions import default_name
from django_jobqueue.text import suggestions
from tests.sample import jobs
from tests.support.tables import differing, refusal


def send_receipt() -> None:
    """Send a receipt.

    By mail.
    """


async def call_webhook() -> None: ...


def declaration(name: str, function: Callable[..., Any] = send_receipt) -> Declaration:
    return Declaration(
        name=name,
        function=function,
        policy=Policy(),
        parameters=Parameters.of(function, takes_context=False),
    )


def in_module(module: str) -> Callable[..., Any]:
    def function() -> None: ...

    function.__module__, function.__qualname__ = module, "send"
    return function


def test_a_declaration_is_found_by_its_name_which_only_it_has() -> None:
    own = Registry()
    one, two = declaration("shop.one"), declaration("shop.two")
    own.add(one)
    own.add(two)
    assert own.get("shop.one") is one
    assert own.get("shop.three") is None
    assert list(own) == [one, two]
    own.remove("shop.one")
    own.remove("shop.one")
    assert list(own) == [two]
    own = Registry()
    own.add(declaration("shop.send", send_receipt))
    with pytest.raises(ImproperlyConfigured) as caught:
        own.add(declaration("shop.send", call_webhook))
    assert str(caught.value) == (
        f"The job type 'shop.send' is declared twice, by {__name__}:send_receipt and "
        f"by {__name__}:call_webhook. Give one of them another name: @job(name=…)."
    )
    again = declaration("shop.send")  # its module is imported again
    own.add(again)
    assert [d is again for d in own] == [True]


def test_a_declaration_describes_its_handler() -> None:
    sync, later = declaration("a"), declaration("b", call_webhook)
    assert (sync.is_async, later.is_async) == (False, True)
    assert sync.path == f"{__name__}:send_receipt"
    assert (sync.description, later.description) == ("Send a receipt.", "")


def test_the_default_name_is_the_function_s_without_its_module_of_jobs() -> None:
    names = [
        *(("shop.jobs", "shop.send"), ("shop.orders.jobs", "shop.orders.send")),
        *(("shop.jobs.mail", "shop.jobs.mail.send"), ("jobs", "jobs.send")),
        *(("shop.nojobs", "shop.nojobs.send"), ("shop.cron", "shop.cron.send")),
    ]
    # The same in processes of other settings.
    for modules in (["jobs"], [], ["nojobs", "cron"], ["shop.jobs"]):
        with override_settings(JOBQUEUE={"MODULES": modules}):
            found = differing(names, lambda module: default_name(in_module(module)))
        assert found == []

    def inside() -> None: ...

    for function in (lambda: None, inside):
        assert refusal(ImproperlyConfigured, default_name, function) == (
            f"@job on {__name__}.{function.__qualname__}: a handler must be a function "
            "of a module, so that workers can import it."
        )


def test_a_name_is_any_printable_text_and_a_bad_one_refused_with_the_reason() -> None:
    unprintable = "must have no space and no control character"
    names: list[tuple[object, str]] = [
        ("", "must be a string, not ''."),
        (None, "must be a string, not None."),
        (5, "must be a string, not 5."),
        ("n" * 101, f"must have at most 100 characters; {'n' * 30!r}… has more."),
        *((text, f"{unprintable}: {text!r}.") for text in ("a b", "a\nb")),
        *((f"a{odd}b", unprintable) for odd in "\x1b\u00a0\u202e\ud800"),
    ]
    assert differing(names, name_problem, str.startswith) == []
    for name in ("a", "shop.send", "os.system", "größe/1", "n" * 100):
        assert name_problem(name) is None


def test_the_jobs_of_every_app_are_discovered() -> None:
    handlers = [one for one in vars(jobs).values() if type(one) is Handler]
    assert handlers
    for handler in handlers:
        found = registry.get(handler.name)
        assert found is not None
        assert found.path == f"tests.sample.jobs:{handler.function.__name__}"


def test_the_near_misses_of_a_name_are_alike_and_not_only_in_their_app() -> None:
    own = Registry()
    known = ["accounts.charge", "shop.send_receipt", "shop.send_invoice"]
    for name in known:
        own.add(declaration(name))
    near: list[tuple[str, list[str]]] = [
        ("accounts.refund", []),  # alike in the app alone
        ("accounts.chagre", ["accounts.charge"]),
        ("shop.sendreceipt", ["shop.send_receipt"]),
        ("shop.send_r", ["shop.send_receipt"]),
        ("receipt", ["shop.send_receipt"]),
        ("charge", ["accounts.charge"]),
        ("shop.send_receipt", []),  # it is there
    ]
    assert differing(near, own.near) == []
    assert own.near("shop.send_mial", ["shop.send_mail"])[0] == "shop.send_mail"


def test_of_very_many_names_the_likeliest_are_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """difflib takes a second for 2,000 long ones."""
    counts: list[int] = []
    closest = suggestions.get_close_matches

    def counting(word: str, names: Sequence[str], *args: Any) -> list[str]:
        counts.append(len(list(names)))
        return closest(word, names, *args)

    monkeypatch.setattr(suggestions, "get_close_matches", counting)
    many = [f"tenant.{n}" for n in range(1_000)] + [f"z{n}.mail" for n in range(1_000)]
    near = Registry().near("shop.sned_mail", [*many, "shop.send_mail"])
    assert near == ["shop.send_mail"]
    assert Registry().near("recieve", [*many, "shop.receive"]) == ["shop.receive"]
    assert max(counts) <= suggestions.MOST_COMPARED
