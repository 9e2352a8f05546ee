"""What is kept of an exception: bounded, free of secrets, and storable."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import override_settings

from django_jobqueue.domain.failures import MESSAGE_LENGTH, MOST_FRAMES, Failure
from django_jobqueue.text.redaction import MASK
from tests.domain.raised import call_in, caught, raised
from tests.sample import jobs
from tests.support.tables import differing

TOKEN = "s3cr3t-t0ken-0f-anna"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"


def kept(error: BaseException, *secrets: str) -> Failure:
    return Failure.of(error, job_type="shop.charge", secrets=secrets)


def texts(failure: Failure) -> str:
    """Everything of a failure that is stored."""
    mark = failure.fingerprint
    frames = json.dumps(failure.frames, ensure_ascii=False)
    parts = (failure.error_class, failure.message, failure.traceback, frames)
    return "\n".join([*parts, mark.error_class, mark.frame, mark.template])


def storable(failure: Failure) -> bool:
    text = texts(failure)
    return "\x00" not in text and text.encode().decode() == text


def test_a_failure_has_class_message_traceback_and_frames() -> None:
    failure = kept(raised(ValueError("no stock")))
    assert failure.error_class == "ValueError"
    assert failure.message == "no stock"
    assert failure.traceback.startswith("Traceback (most recent call last):\n")
    assert failure.traceback.endswith("ValueError: no stock\n")
    (frame,) = failure.frames
    assert frame["file"].endswith("raised.py")
    assert frame["function"] == "raised"
    assert frame["line"] > 0
    assert frame["project"] is True
    assert failure.fingerprint.frame == "tests.domain.raised:raised"
    cause = raised(KeyError("card_token"))
    failure = kept(raised(ValueError("cannot charge"), cause=cause))
    assert failure.error_class == "ValueError"
    assert "KeyError: 'card_token'\n" in failure.traceback
    assert "direct cause of the following exception" in failure.traceback
    failure = kept(caught(lambda: json.loads("{")))
    ours = [frame["project"] for frame in failure.frames]
    assert ours == sorted(ours, reverse=True)
    assert failure.frames[-1]["file"].endswith("decoder.py")
    failure = kept(caught(lambda: jobs.fail("no stock")))  # and not with our frames
    assert "django_jobqueue" not in "".join(f["file"] for f in failure.frames)
    assert failure.frames[-1]["function"] == "fail"
    refused = ValueError("what we refuse has no frame to show")
    assert kept(refused).traceback == ""
    refused.add_note("see the guide")
    assert kept(refused).traceback.endswith("to show\nsee the guide\n")

    def charge() -> None:
        card = "-".join(["4000", "0566", "5566", "5556"])
        raise ValueError(len(card))

    assert "4000-0566" not in texts(kept(caught(charge)))  # no value of a variable


@pytest.mark.dear
def test_a_message_of_50_mb_and_a_traceback_are_cut() -> None:
    letter = "ü"
    many = 50_000_000 // len(letter.encode())
    failure = kept(raised(ValueError(f"begin{letter * many}end")))
    assert len(failure.message.encode()) <= MESSAGE_LENGTH
    assert failure.message.startswith("begin")
    assert failure.message.endswith("end")
    assert f"\n… {many + 8:,} characters, cut here …\n" in failure.message
    assert len(failure.traceback.encode()) <= 65_536
    error: BaseException = ValueError("begin")
    for number in range(10):
        error = raised(RuntimeError(f"{number} " + "ü" * 5_000), cause=error)
    for limit in (256, 1_000, 65_536):
        with override_settings(JOBQUEUE={"MAX_TRACEBACK_BYTES": limit}):
            failure = kept(error)
        assert len(failure.traceback.encode()) <= limit
        assert failure.traceback.startswith("ValueError: begin"[: limit // 4])


def recurse(depth: int) -> None:
    recurse(depth + 1)


def test_of_endless_recursion_the_innermost_frames_are_kept() -> None:
    failure = kept(caught(lambda: recurse(0)))
    assert failure.fingerprint.frame == f"{__name__}:recurse"
    assert len(failure.frames) == MOST_FRAMES
    assert {frame["function"] for frame in failure.frames} == {"recurse"}
    assert len(failure.traceback) < 65_536
    # A name that is very long is cut.
    long, path = type("E" * 500, (Exception,), {}), f"/srv/{'p' * 500}.py"
    failure = kept(caught(lambda: call_in(path, "m" * 500, lambda: 1 / 0)))
    assert all(len(frame["file"]) <= 300 for frame in failure.frames)
    assert len(kept(raised(long("x"))).error_class) == 200
    assert len(failure.fingerprint.frame) <= 300


def test_what_a_database_cannot_store_is_escaped() -> None:
    for text in ("a\x00b", "\ud800", "a\x00\udfff" * 5_000):
        failure = kept(raised(ValueError(text)))
        assert storable(failure)
        assert "\\x00" in failure.message or "\\ud800" in failure.message
    failure = kept(caught(lambda: call_in("/srv/\udcff.py", "shop", lambda: 1 / 0)))
    assert storable(failure)
    assert any("\\udcff" in frame["file"] for frame in failure.frames)
    odd = type("Odd", (Exception,), {})
    odd.__qualname__ = "O\x00d"
    assert storable(kept(raised(odd("x"))))


class Unprintable(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt

    __repr__ = __str__


class Named(ImportError):
    @property
    def name(self) -> Any:
        raise ValueError("no name")


class Noted(Exception):
    @property
    def __notes__(self) -> list[str]:
        raise RuntimeError("no notes")


def test_whatever_is_raised_is_kept() -> None:
    for error in (
        Unprintable(),
        Named("x"),
        Noted("x"),
        SyntaxError("bad", ("f.py", -5, 7, "x" * 9_999)),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
        SystemExit(object()),
        BaseExceptionGroup("two", [KeyboardInterrupt(), Unprintable()]),
    ):
        failure = kept(raised(error))
        assert failure.error_class.endswith(type(error).__qualname__)
        assert failure.traceback
        assert storable(failure)
    failure = kept(ValueError("made, not raised"))
    assert failure.traceback == ""  # made, not raised
    assert (failure.frames, failure.fingerprint.frame) == ([], "shop.charge")
    failure = Failure.synthetic("WorkerLost", "killed by \x00", job_type="shop.charge")
    assert failure.error_class == "jobqueue.WorkerLost"
    assert failure.message == "killed by \\x00"
    assert (failure.traceback, failure.frames) == ("", [])
    mark = failure.fingerprint
    assert (mark.frame, mark.template) == ("shop.charge", "WorkerLost")
    assert mark != Failure.synthetic("WorkerLost", "", job_type="a.b").fingerprint


def test_sensitive_values_are_not_kept_in_message_traceback_or_template() -> None:
    for error in (
        ValueError(f"cannot use {TOKEN}"),
        KeyError(TOKEN),
        ValueError(f"{TOKEN}\n" * 100),
        ExceptionGroup(TOKEN, [ValueError(TOKEN), KeyError(TOKEN)]),
    ):
        outer = raised(RuntimeError(f"with {TOKEN}"), cause=raised(error))
        failure = kept(outer, TOKEN)
        assert TOKEN not in texts(failure)
        assert MASK in failure.message
        assert MASK in failure.traceback
    failure = kept(raised(ValueError("postgres://shop:hunter2@db/shop")))
    assert failure.message == f"postgres://{MASK}@db/shop"
    assert "hunter2" not in failure.traceback
    long = "longsecretvalue"
    templates = [
        (f"no {TOKEN}", [TOKEN], "ken"),
        (f"got {JWT}", [], "dozjgNryP"),
        ("x" * 150 + f" {long}", [long], "longs"),  # where the template is cut
    ]

    def template(text: str, secrets: list[str]) -> str:
        return kept(raised(ValueError(text)), *secrets).fingerprint.template

    assert differing(templates, template, lambda got, part: part not in got) == []
