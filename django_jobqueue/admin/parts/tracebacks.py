"""Tracebacks as frames: those of the project stand out, those of libraries fold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, NamedTuple, TypeAlias

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.parts.display import shown_text
from django_jobqueue.domain.fingerprints import is_project_file
from django_jobqueue.models import Failure

_FRAME: Final = re.compile(  # the bars are those of exception groups
    r'(?P<indent>[ |]*)  File "(?P<file>.*)", line (?P<line>-?\d+|None), '
    r"in (?P<function>.*)"
)

_HEADING: Final = "Traceback (most recent call last):"
_LINKS: Final = {  # from a cause to the exception that came of it
    "The above exception was the direct cause of the following exception:": _(
        "This was the direct cause of:"
    ),
    "During handling of the above exception, another exception occurred:": _(
        "While this was handled, there was:"
    ),
}

Place: TypeAlias = tuple[str, int | None]  # file and line


@dataclass(slots=True)
class Frame:
    """A call of a traceback; all texts are fit to be shown."""

    file: str
    line: int | None
    function: str
    project: bool  # a file of the project, not of a library
    source: str = ""  # the line of code, and marks below it


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive frames, all of the project or all of libraries; or the text of an
    exception; or how the one before led to the next one."""

    text: str = ""
    link: Promise | str = ""
    project: bool = True
    frames: list[Frame] = field(default_factory=list)


class Traceback(NamedTuple):
    """A traceback as the page shows it; see ``admin/jobqueue/traceback.html``."""

    text: str
    parts: list[Part]

    @property
    def has_project_frames(self) -> bool:
        """True if there is anything that library frames can fold around."""
        return any(part.frames and part.project for part in self.parts)


def traceback_of(
    failure: Failure, shown: Callable[[str], str] = shown_text
) -> Traceback | None:
    """The traceback of an attempt; None if it has none.

    ``shown`` masks and shortens text that came from a job.
    """
    text = shown(failure.traceback)
    if not text:
        return None
    known = {(f["file"], f["line"]): f for f in failure.frames if _is_frame(f)}
    return Traceback(text, list(_parts(text, known)))


def _is_frame(value: object) -> bool:
    return isinstance(value, dict) and {"file", "line", "function"} <= value.keys()


def _parts(text: str, known: dict[Place, dict[str, object]]) -> Iterator[Part]:
    read = _read(text.splitlines(), known)
    for origin, run in groupby(read, key=_origin):
        pieces = list(run)
        if origin == "text":
            yield from _texts(line for line in pieces if isinstance(line, str))
        else:
            frames = [frame for frame in pieces if isinstance(frame, Frame)]
            yield Part(project=origin == "project", frames=frames)


def _texts(lines: Iterable[str]) -> Iterator[Part]:
    """The text between frames, without empty headings."""
    for link, run in groupby(lines, key=lambda line: _LINKS.get(line.strip(), "")):
        text = "\n".join(line for line in run if line != _HEADING).strip("\n")
        if link:
            yield Part(link=link)
        elif text:
            yield Part(text=text)


def _origin(read: Frame | str) -> str:
    if isinstance(read, str):
        return "text"
    return "project" if read.project else "library"


def _read(
    lines: list[str], known: dict[Place, dict[str, object]]
) -> Iterator[Frame | str]:
    """Each frame with its lines of code, and each line that belongs to none."""
    frame, indent = None, ""
    for line in lines:
        match = _FRAME.fullmatch(line)
        if frame is not None and match is None and line.startswith(indent):
            code = line[len(indent) :]
            frame.source += f"\n{code}" if frame.source else code
            continue
        if frame is not None:
            yield frame
            frame = None
        if match is None:
            yield line
        else:
            frame, indent = _frame(match, known), f"{match['indent']}    "
    if frame is not None:
        yield frame


def _frame(match: re.Match[str], known: dict[Place, dict[str, object]]) -> Frame:
    """A frame as the text tells it; the worker noted whose file it is, and the whole
    name of the function. It noted nothing of the frames of causes."""
    file = match["file"]
    line = int(match["line"]) if match["line"].isdecimal() else None
    noted = known.get((file, line), {})
    return Frame(
        file=file,
        line=line,
        function=shown_text(str(noted.get("function", match["function"]))),
        project=bool(noted.get("project", is_project_file(file))),
    )
