"""The fingerprint of a failure: what makes two failures the same one.

Version 1 hashes the class of the root exception, the innermost frame of the project's
own code (without its line number, so that it survives edits elsewhere in the file), and
the first line of the message with its varying parts replaced by tokens, and without its
secrets. A coarse fingerprint leaves the message out, and a class that another program
says: it bounds how many groups one place in the code can make, or the programs that do
the jobs of a type. The version is part of the hash, so a better algorithm starts new
groups.
"""

from __future__ import annotations

import os
import re
import sysconfig
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final, NamedTuple
from uuid import UUID

from django_jobqueue.conf import conf
from django_jobqueue.text.redaction import MASK, mask_start
from django_jobqueue.text.sanitizing import storable, text_of

VERSION: Final = "1"
MAX_FRAMES: Final = 2_000
CLASS_LENGTH: Final = 200
FRAME_LENGTH: Final = 300
TEMPLATE_LENGTH: Final = 160
READ_LENGTH: Final = 1_000
ANY_CLASS: Final = "…"  # of a group with several

_PACKAGE = os.path.join(Path(__file__).parent.parent, "")
_IP_PART = "[0-9a-f]{1,4}(?::[0-9a-f]{1,4})*"
_TOKENS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), token)
    for pattern, token in (
        (re.escape(MASK), "<n>"),  # any long number may pass for one of a card
        (
            r"(?<![0-9a-f])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![0-9a-f])",
            "<uuid>",
        ),
        (r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+", "<email>"),
        (r"\b[a-z][a-z0-9+.-]*://\S+", "<url>"),
        (r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?\S*)?", "<time>"),
        (r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b", "<ip>"),
        (r"(?<![\w:])(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}(?![\w:])", "<ip>"),
        (rf"(?<![\w:])(?:{_IP_PART})?::{_IP_PART}(?![\w:])", "<ip>"),
        (r"\b0x[0-9a-f]+\b", "<hex>"),
        # Of random digits in base 16 some are in base 10, so they are numbers, too.
        (r"(?<![^\W_])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}(?![^\W_])", "<n>"),
        (r"(?:/[\w.~-]+){2,}/?", "<path>"),
    )
)
_QUOTED = re.compile(r"(?<!\w)[bru]?(?:'(.*?)'|\"(.*?)\")(?!\w)")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_.]*\Z")
_NUMBER = re.compile(r"[-+]?\d[\d_,]*(?:\.\d+)?(?:e[-+]?\d+)?", re.IGNORECASE)
_NAMED = (KeyError, AttributeError, NameError, ImportError)  # the name is the bug


class Fingerprint(NamedTuple):
    """The parts by which a failure is grouped."""

    error_class: str  # of the root exception, as module.qualname
    frame: str  # module:qualname, or the job type's name
    template: str  # the message without its varying parts
    value: UUID
    coarse: UUID
    coarse_class: str  # what the coarse one is shown as

    @classmethod
    def of_parts(cls, error_class: str, frame: str, template: str) -> Fingerprint:
        """The fingerprint with these parts, of an exception whose class is code."""
        return cls(
            error_class=error_class,
            frame=frame,
            template=template,
            value=_hash(error_class, frame, template),
            coarse=_hash(error_class, frame),
            coarse_class=error_class,
        )

    @classmethod
    def of_texts(cls, error_class: str, job_type: str, template: str) -> Fingerprint:
        """The same where another program says the class: it may be another one each
        time, as the message may, so it bounds nothing."""
        own = cls.of_parts(error_class, job_type, template)
        return own._replace(coarse=_hash("", job_type), coarse_class=ANY_CLASS)


def fingerprint(
    error: BaseException, *, job_type: str, secrets: Collection[str] = ()
) -> Fingerprint:
    """The fingerprint of an exception that a handler of this job type raised.

    An attribute ``job_fingerprint`` of the exception takes the place of the message.
    """
    chain = _chain(error)
    root, frame = chain[-1], _frame_of(chain)
    chosen = storable(mask_start(_chosen(root), TEMPLATE_LENGTH, secrets))
    return Fingerprint.of_parts(
        class_name(root),
        storable(frame or job_type)[:FRAME_LENGTH],
        chosen[:TEMPLATE_LENGTH] or template_of(root, secrets),
    )


def class_name(error: BaseException) -> str:
    """``module.qualname`` of the exception's class, without ``builtins.``."""
    cls = type(error)
    module = "" if cls.__module__ == "builtins" else f"{cls.__module__}."
    return storable(f"{module}{cls.__qualname__}")[:CLASS_LENGTH]


def template_of(error: BaseException, secrets: Collection[str] = ()) -> str:
    """The first line of the message with its varying parts replaced by tokens."""
    message = storable(mask_start(text_of(error), READ_LENGTH, secrets))
    text = next(iter(message.splitlines()), "")
    for pattern, token in _TOKENS:
        text = pattern.sub(token, text)
    keep_names = isinstance(error, _NAMED)
    text = _QUOTED.sub(lambda match: _quoted(match, keep_names), text)
    text = _NUMBER.sub("<n>", text)
    return " ".join(text.split())[:TEMPLATE_LENGTH]


def frames_of(
    traceback: TracebackType | None,
) -> Iterator[tuple[FrameType, int | None]]:
    """The frames of a traceback and their lines, outermost first, without our own. An
    instruction that stands in no line has None: a timeout may be raised there."""
    for _ in range(MAX_FRAMES):
        if traceback is None:
            return
        if not traceback.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            line: int | None = traceback.tb_lineno
            # Early releases of Python 3.11 say -1.
            yield traceback.tb_frame, line if line and line > 0 else None
        traceback = traceback.tb_next


def is_project_file(path: str) -> bool:
    """True if this is a file of the project, not of a library."""
    return _is_project_file(path, tuple(conf.project_roots))


def _chosen(error: BaseException) -> str:
    """The exception's own ``job_fingerprint``; empty if it has none."""
    try:
        return str(getattr(error, "job_fingerprint", None) or "")
    except BaseException:  # a property, or a __str__, may raise anything
        return ""


def _chain(error: BaseException) -> list[BaseException]:
    """From the exception to where it began, by ``raise … from`` and by groups with one
    member."""
    chain, seen = [error], {id(error)}
    while True:
        inner = error.__cause__
        if isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            inner = error.exceptions[0]
        if inner is None or id(inner) in seen:
            return chain
        seen.add(id(inner))
        chain.append(inner)
        error = inner


def _frame_of(chain: Sequence[BaseException]) -> str:
    """``module:qualname`` of the frame in the project that is nearest to where it
    began; without any, of the last frame there is."""
    last: FrameType | None = None
    for error in reversed(chain):
        frames = [frame for frame, _line in frames_of(error.__traceback__)]
        own = [f for f in frames if is_project_file(f.f_code.co_filename)]
        if own:
            return _name_of(own[-1])
        last = last or next(reversed(frames), None)
    return _name_of(last) if last else ""


def _name_of(frame: FrameType) -> str:
    return f"{frame.f_globals.get('__name__', '?')}:{frame.f_code.co_qualname}"


@lru_cache(maxsize=4_096)
def _is_project_file(path: str, roots: tuple[str, ...]) -> bool:
    if path.startswith("<"):
        return False
    if roots:
        return path.startswith(_folders(roots))
    return not path.startswith(_library_roots())


@lru_cache(maxsize=1)
def _library_roots() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return (*_folders({sysconfig.get_path(name) for name in names}), _PACKAGE)


def _folders(paths: Iterable[str]) -> tuple[str, ...]:
    """These paths, each with a slash at its end."""
    return tuple(os.path.join(path, "") for path in paths)


def _quoted(match: re.Match[str], keep_names: bool) -> str:
    text = match.group(1) if match.group(1) is not None else match.group(2)
    if keep_names and _IDENTIFIER.match(text):
        return repr(text)
    return "<str>"


def _hash(*parts: str) -> UUID:
    digest = blake2b(digest_size=16)
    for part in (VERSION, *parts):
        digest.update(part.encode("utf-8", "backslashreplace") + b"\0")
    return UUID(bytes=digest.digest())
