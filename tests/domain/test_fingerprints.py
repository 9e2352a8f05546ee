"""Fingerprint version 1: which failures are the same one, and which are not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import override_settings

from django_jobqueue.domain.arguments import Parameters
from django_jobqueue.domain.fingerprints import (
    TEMPLATE_LENGTH,
    Fingerprint,
    class_name,
    fingerprint,
    is_project_file,
    template_of,
)
from tests.domain.raised import call_in, caught, raised
from tests.support.tables import differing


def mark(error: BaseException) -> Fingerprint:
    return fingerprint(error, job_type="shop.charge")


def marks(*errors: BaseException) -> set[Any]:
    """The fingerprints of these, each raised in the same place."""
    return {mark(raised(error)).value for error in errors}


UUID_1 = "019aa2f0-0001-7abc-8def-000000000001"
UUID_2 = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
SAME: list[tuple[str, str, str]] = [
    ("no order 7", "no order 1234567", "no order <n>"),
    ("took 1.5 s", "took 12e-3 s", "took <n> s"),
    ("sum is -3", "sum is +1,234.50", "sum is <n>"),
    (f"no order {UUID_1}", f"no order {UUID_2.upper()}", "no order <uuid>"),
    ("mail to a.b@c.ch", "mail to x+y@d.co.uk", "mail to <email>"),
    ("GET http://a.ch/1?q=2", "GET https://b.ch:8/x#y", "GET <url>"),
    ("at 2026-11-21T05:00:00Z", "at 2025-01-02 06:07:08.9+01:00", "at <time>"),
    ("on 2026-11-21", "on 2025-01-02", "on <time>"),
    ("from 10.0.0.1", "from 192.168.17.4:5432", "from <ip>"),
    ("at 0x7f00aa", "at 0xDEADBEEF", "at <hex>"),
    ("commit 4f2a9c31", "commit 00ff11ee22aa", "commit <n>"),
    ("no order_4f2a9c31", "no order_aa00bb11cc", "no order_<n>"),
    ("from 2001:db8::1", "from fe80::a:b", "from <ip>"),
    ("from ::1", "from 1:2:3:4:5:6:7:ffff", "from <ip>"),
    ("at 12:30:45", "at 01:02:03", "at <n>:<n>:<n>"),
    ("open /srv/a/b.txt", "open /var/lib/shop/c.txt", "open <path>"),
    ("no user 'anna'", "no user 'b o b'", "no user <str>"),
    ('no user "anna"', 'no user "it\'s me"', "no user <str>"),
    ("can't open 'a'", "can't open 'it's b'", "can't open <str>"),
    ("no user b'anna'", 'no user b"it\'s"', "no user <str>"),
    ("a  b\tc", "a b c", "a b c"),
    ("first line\nsecond", "first line\nother\nthird", "first line"),
    ("", "", ""),
]


def test_messages_that_differ_in_varying_parts_are_the_same() -> None:
    def both(one: str, two: str) -> set[str]:
        errors = ValueError(one), ValueError(two)
        assert len(marks(*errors)) == 1
        return {template_of(error) for error in errors}

    rows = [(one, two, {template}) for one, two, template in SAME]
    assert differing(rows, both) == []


def test_other_failures_have_other_fingerprints() -> None:
    for one, two in (
        (ValueError("no stock"), ValueError("no price")),
        (ValueError("no stock"), TypeError("no stock")),
        (KeyError("card_token"), KeyError("user_id")),
        (AttributeError("no attribute 'pay'"), AttributeError("no attribute 'pat'")),
        (NameError("name 'pay' is not defined"), NameError("name 'x' is not defined")),
        (ImportError("cannot import 'pay'"), ImportError("cannot import 'x'")),
    ):
        assert len(marks(one, two)) == 2, (one, two)
    # The missing name of a KeyError is kept, and a key that varies is not.
    templates: list[tuple[Exception, str]] = [
        *((KeyError("card_token"), "'card_token'"), (ValueError("'pay'"), "<str>")),
        *((KeyError(key), "<str>") for key in ("user 7", "x y", "user7")),
        (KeyError(7), "<n>"),
    ]
    assert differing(templates, template_of) == []


def fail() -> None:
    raise ValueError("no")


def fail_there() -> None:
    raise ValueError("no")


def parse_nothing() -> None:
    json.loads("{")


def test_the_frame_is_the_innermost_one_of_the_project_without_its_line() -> None:
    assert mark(caught(parse_nothing)).frame == f"{__name__}:parse_nothing"
    here, there = mark(caught(fail)), mark(caught(fail_there))
    assert here.frame == f"{__name__}:fail"
    assert here.value != there.value
    assert here.coarse != there.coarse
    assert mark(ValueError("never raised")).frame == "shop.charge"  # the job type


def bind_badly() -> None:
    Parameters.of(parse_nothing, takes_context=False).bind((1,), {})


def test_neither_the_line_nor_our_own_frames_matter() -> None:
    moved = "\n" * 50 + "def fail(): raise ValueError('no')"
    errors = []
    for source in (moved.strip(), moved):
        names: dict[str, Any] = {"__name__": "shop.orders"}
        exec(compile(source, "/srv/shop/orders.py", "exec"), names)
        errors.append(caught(names["fail"]))
    assert len({mark(error).value for error in errors}) == 1
    ours = mark(caught(bind_badly))
    assert ours.error_class == "django_jobqueue.exceptions.InvalidArguments"
    assert ours.frame == f"{__name__}:bind_badly"


def test_roots_of_the_project_say_whose_code_counts() -> None:
    call = caught(
        lambda: call_in(
            "/srv/shop/a.py", "shop.a", lambda: call_in("/opt/lib/b.py", "lib.b", fail)
        )
    )
    roots = {"/srv/shop": "shop.a:place", "/opt/lib": "lib.b:place"}
    roots["/nowhere"] = f"{__name__}:fail"  # the innermost one
    for root, frame in roots.items():
        with override_settings(JOBQUEUE={"PROJECT_ROOTS": [root]}):
            assert mark(call).frame == frame


def test_files_of_the_project_are_those_of_its_roots_and_of_no_library() -> None:
    assert is_project_file(__file__)
    assert is_project_file("/srv/shop/orders.py")
    for file in (json.__file__, pytest.__file__, "<string>"):
        assert not is_project_file(file)
    for root in ("/srv/shop", "/srv/shop/"):
        with override_settings(JOBQUEUE={"PROJECT_ROOTS": [root]}):
            assert not is_project_file("/srv/shop-old/orders.py")
            assert is_project_file("/srv/shop/orders.py")


def test_the_root_of_a_chain_is_what_counts_and_circles_end() -> None:
    root = raised(KeyError("card_token"))
    one = raised(ValueError("cannot charge 7"), cause=root)
    two = raised(RuntimeError("worker 3 gave up"), cause=one)
    assert mark(one) == mark(two) == mark(root)
    assert mark(two).error_class == "KeyError"
    one, two = raised(ValueError("one")), raised(ValueError("two"))
    one.__cause__, two.__cause__ = two, one
    assert (mark(one).template, mark(two).template) == ("two", "one")
    member = raised(ValueError("member"))
    group = raised(ExceptionGroup("group", [member]))
    member.__cause__ = group
    assert mark(group).template == "member"
    member = raised(KeyError("card_token"))
    group = raised(ExceptionGroup("one failed", [ExceptionGroup("in", [member])]))
    assert mark(group) == mark(member)
    group = raised(ExceptionGroup("2 failed", [KeyError("a"), KeyError("b")]))
    assert mark(group).error_class == "ExceptionGroup"
    assert mark(group).template == "<n> failed (<n> sub-exceptions)"


def test_where_a_library_began_it_the_frame_is_that_of_the_project() -> None:
    """As with httpx, which raises its own exceptions from those of a library below."""

    def connect() -> None:
        try:
            call_in("/opt/lib/b.py", "lib.b", fail)
        except ValueError as cause:
            raise ConnectionError("no route") from cause

    def fail_while_handling() -> None:
        try:
            fail()
        except ValueError:  # which is no cause
            raise RuntimeError("clean-up failed")  # noqa: B904

    call = caught(lambda: call_in("/srv/shop/a.py", "shop.a", connect))
    with override_settings(JOBQUEUE={"PROJECT_ROOTS": ["/srv/shop"]}):
        assert mark(call).error_class == "ValueError"
        assert mark(call).frame == "shop.a:place"
    assert mark(caught(fail_while_handling)).error_class == "RuntimeError"


class Unprintable(Exception):
    def __str__(self) -> str:
        raise SystemExit("no text")


def test_an_exception_that_cannot_be_formatted_or_is_long_has_a_fingerprint() -> None:
    assert len(marks(Unprintable(), Unprintable("other"))) == 1
    error = ValueError("word " * 10_000_000)
    assert len(template_of(error)) <= TEMPLATE_LENGTH


class Chosen(Exception):
    def __init__(self, message: str, chosen: object) -> None:
        super().__init__(message)
        self.job_fingerprint = chosen


def test_an_exception_may_say_itself_what_makes_it_the_same() -> None:
    assert len(marks(Chosen("red", "colour"), Chosen("green", "colour"))) == 1
    assert len(marks(Chosen("red", "colour"), Chosen("red", "shade"))) == 2
    assert len(marks(Chosen("red", ""), Chosen("green", None))) == 2
    assert mark(Chosen("red", "x" * 999)).template == "x" * TEMPLATE_LENGTH
    assert class_name(ValueError()) == "ValueError"
    assert (
        class_name(json.JSONDecodeError("m", "d", 0)) == "json.decoder.JSONDecodeError"
    )
    assert mark(Awkward("no stock")).template == "no stock"  # as if it chose none
    assert mark(Awkward("m")).error_class == f"{__name__}.Awkward"


class Awkward(Exception):
    @property
    def job_fingerprint(self) -> str:
        raise ValueError("not now")


def test_the_hash_of_version_1_never_changes() -> None:
    made = Fingerprint.of_parts("KeyError", "shop.billing:charge", "'card_token'")
    assert str(made.value) == "b9454dd9-1551-402a-0224-c6355a673a0f"
    assert str(made.coarse) == "4e4654ca-3c3f-26d3-53cf-b87c606755b7"
    one, two = Fingerprint.of_parts("a", "bc", ""), Fingerprint.of_parts("ab", "c", "")
    assert one.coarse != two.coarse
    one, two = mark(raised(ValueError("no stock"))), mark(raised(ValueError("dear")))
    assert one.coarse == two.coarse
    assert one.value != two.value
    assert one.coarse != one.value
