"""The stored parts of an exception: class, message, trimmed traceback, fingerprint.

Everything is bounded and free of what PostgreSQL cannot store, whatever a handler
raised.
"""

from __future__ import annotations

import traceback
from collections.abc import Collection
from typing import Any, Final, NamedTuple

from django_jobqueue.conf import conf
from django_jobqueue.domain.fingerprints import (
    Fingerprint,
    class_name,
    fingerprint,
    frames_of,
    is_project_file,
)
from django_jobqueue.text.sanitizing import clean, storable, text_of

MESSAGE_LENGTH: Final = 2_000
MOST_FRAMES: Final = 100


class Failure(NamedTuple):
    """The stored parts of an exception."""

    error_class: str
    message: str
    traceback: str
    frames: list[dict[str, Any]]  # file, line, function, project; outermost first
    fingerprint: Fingerprint

    @classmethod
    def of(
        cls, error: BaseException, *, job_type: str, secrets: Collection[str] = ()
    ) -> Failure:
        """Keep an exception that a handler of this job type raised.

        ``secrets`` are texts that must not be kept, such as the job's sensitive values.
        """
        return cls(
            error_class=class_name(error),
            message=clean(text_of(error), MESSAGE_LENGTH, secrets),
            traceback=_traceback(error, conf.max_traceback_bytes, secrets),
            frames=_frames(error),
            fingerprint=fingerprint(error, job_type=job_type, secrets=secrets),
        )

    @classmethod
    def synthetic(cls, error_class: str, message: str, *, job_type: str) -> Failure:
        """A failure without an exception, such as a worker that died."""
        name = f"jobqueue.{error_class}"
        return cls(
            error_class=name,
            message=clean(message, MESSAGE_LENGTH),
            traceback="",
            frames=[],
            fingerprint=Fingerprint.of_parts(name, job_type, error_class),
        )


def _traceback(error: BaseException, limit: int, secrets: Collection[str]) -> str:
    """The traceback as text, from the handler's own frame on; empty if it would say no
    more than the message."""
    try:
        report = traceback.TracebackException(
            type(error), error, _without_ours(error), limit=-MOST_FRAMES, compact=True
        )
        if not report.stack and len(list(report.format_exception_only())) == 1:
            return ""
        parts = [
            part if len(part) <= limit else clean(part, limit, secrets)
            for part in report.format()
        ]
    except Exception:
        return f"{class_name(error)}: <this exception cannot be formatted>\n"
    return clean("".join(parts), limit, secrets)


def _without_ours(error: BaseException) -> Any:
    """The traceback from the first frame on that is not this package's; None if all
    are: what we refuse is explained by the message."""
    first = next(frames_of(error.__traceback__), None)
    step = error.__traceback__ if first else None
    while first and step is not None and step.tb_frame is not first[0]:
        step = step.tb_next
    return step


def _frames(error: BaseException) -> list[dict[str, Any]]:
    frames = list(frames_of(error.__traceback__))[-MOST_FRAMES:]
    return [
        {
            "file": storable(frame.f_code.co_filename)[-300:],
            "line": line,
            "function": storable(frame.f_code.co_qualname)[:200],
            "project": is_project_file(frame.f_code.co_filename),
        }
        for frame, line in frames
    ]


def forget_traceback(error: BaseException) -> None:
    """Take the traceback from an exception that is dealt with. If a handler raises the
    same instance again, Python would put the new frames before the old ones."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        BaseException.with_traceback(link, None)
        link = link.__cause__ or link.__context__
