"""Tracebacks as frames: read from real exceptions, and from anything else."""

from __future__ import annotations

import json

import pytest
from django.template.loader import render_to_string

from django_jobqueue.admin.parts.tracebacks import Frame, Traceback, traceback_of
from django_jobqueue.domain import failures
from django_jobqueue.models import Failure


def parse(text: str) -> object:
    return json.loads(text)


def wrap(text: str) -> object:
    try:
        return parse(text)
    except ValueError as error:
        raise LookupError("no such order") from error


def failure_of(text: str) -> Failure:
    try:
        wrap(text)
    except LookupError as error:
        kept = failures.Failure.of(error, job_type="shop.sell")
        return Failure(traceback=kept.traceback, frames=kept.frames)
    raise AssertionError("it does not fail")


def read(failure: Failure) -> Traceback:
    found = traceback_of(failure)
    assert found is not None
    return found


def frames(found: Traceback) -> list[Frame]:
    return [frame for part in found.parts for frame in part.frames]


def test_frames_have_their_code_and_words_between_them_stay() -> None:
    found = read(failure_of("{"))
    ours = [f.function for f in frames(found) if f.project]
    libraries = {f.file.rpartition("/")[2] for f in frames(found) if not f.project}
    assert ours == ["wrap", "parse", "failure_of", "wrap"]
    assert libraries == {"__init__.py", "decoder.py"}
    assert found.has_project_frames
    parsing = next(f for f in frames(found) if f.function == "parse")
    assert parsing.source.splitlines()[0] == "return json.loads(text)"
    assert parsing.line == parse.__code__.co_firstlineno + 1
    texts = "\n".join(part.text for part in found.parts)
    assert "json.decoder.JSONDecodeError: " in texts
    assert texts.endswith("LookupError: no such order")
    # Causes are told in words, and each exception once.
    kinds = [
        str(part.link) or part.text.partition(":")[0] or "frames"
        for part in found.parts
    ]
    assert [kind for kind in kinds if kind != "frames"] == [
        "json.decoder.JSONDecodeError",
        "This was the direct cause of:",
        "LookupError",
    ]
    assert traceback_of(Failure(traceback="", frames=[])) is None


def test_an_exception_of_a_handler_is_told_apart_from_one_with_a_cause() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/srv/shop/jobs.py", line 7, in sell\n'
        "    pay()\n"
        "KeyError: 'card'\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n"
        '  File "/srv/shop/jobs.py", line 9, in sell\n'
        "    raise Refused\n"
        "shop.Refused: two\n\nlines\n"
    )
    parts = read(Failure(traceback=text, frames=[])).parts
    told = [str(part.link or part.text) for part in parts if not part.frames]
    assert told == [
        "KeyError: 'card'",
        "While this was handled, there was:",
        "shop.Refused: two\n\nlines",
    ]


def test_the_frames_of_a_group_are_read_behind_their_bars() -> None:
    text = (
        "  + Exception Group Traceback (most recent call last):\n"
        '  |   File "/srv/shop/jobs.py", line 7, in sell\n'
        "  |     raise group\n"
        "  | ExceptionGroup: two (2 sub-exceptions)\n"
    )
    (frame,) = frames(read(Failure(traceback=text, frames=[])))
    found = (frame.file, frame.line, frame.source)
    assert found == ("/srv/shop/jobs.py", 7, "raise group")


def test_what_the_worker_noted_of_a_file_is_believed_if_it_is_something() -> None:
    text = '  File "/srv/shop/jobs.py", line 7, in sell\n    x\n'
    noted = {"file": "/srv/shop/jobs.py", "line": 7, "function": "Shop.sell"}
    for project in (True, False):
        frames_ = [{**noted, "project": project}]
        (frame,) = frames(read(Failure(traceback=text, frames=frames_)))
        assert (frame.function, frame.project) == ("Shop.sell", project)
    for odd in ([], [7], [{}], [{"file": "x"}], [None]):
        assert frames(read(Failure(traceback=text, frames=odd))), odd


def test_a_frame_may_stand_in_no_line() -> None:
    def fail() -> None:
        raise LookupError("no such order")

    code = fail.__code__  # as if a timeout were raised at an instruction of no line
    without_lines = bytes([0x80 | 15 << 3 | 7]) * (len(code.co_code) // 16 + 1)
    fail.__code__ = code.replace(co_linetable=without_lines)
    with pytest.raises(LookupError) as raised:
        fail()
    kept = failures.Failure.of(raised.value, job_type="shop.sell")
    assert kept.frames[-1]["line"] is None
    found = read(Failure(traceback=kept.traceback, frames=kept.frames))
    page = render_to_string("admin/jobqueue/traceback.html", {"traceback": found})
    assert frames(found)[-1].line is None
    assert frames(found)[-1].function.endswith("fail")
    assert "None</code>" not in page


def test_secrets_are_masked_and_characters_that_turn_text_are_shown() -> None:
    text = (
        '  File "shop.py", line 1, in sell\n'
        "    connect(password='hunter2hunter2')\n"
        "ValueError: \u202e<script>\n"
    )
    found = read(Failure(traceback=text, frames=[]))
    page = render_to_string("admin/jobqueue/traceback.html", {"traceback": found})
    assert "hunter2" not in page
    assert "\\u202e&lt;script&gt;" in page
