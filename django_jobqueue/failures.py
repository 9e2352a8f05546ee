"""What is kept of an exception: class, message, trimmed traceback, fingerprint.

Everything is bounded and free of what PostgreSQL cannot store, whatever a handler
raised.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from django_jobqueue.conf import conf
from django_jobqueue.fingerprints import (
    Fingerprint,
    class_name,
    fingerprint,
    frames_of,
    is_project_file,
    message_of,
)
from django_jobqueue.redaction import mask_text

MESSAGE_LENGTH: Final = 2_000
KEPT_FRAMES: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What is kept of an exception."""

    error_class: str
    message: str
    traceback: str
    frames: list[dict[str, Any]]  # file, line, function, project; outermost first
    fingerprint: Fingerprint

    @classmethod
    def of(
        cls, error: BaseException, *, job_type: str, secrets: Iterable[str] = ()
    ) -> Failure:
        """Keep an exception that a handler of this job type raised.

        ``secrets`` are texts that must not be kept, such as the job's sensitive values.
        """
        mark = fingerprint(error, job_type=job_type)
        return cls(
            error_class=class_name(error)[:200],
            message=_clean(message_of(error), MESSAGE_LENGTH, secrets),
            traceback=_clean(
                _format(error, conf.max_traceback_bytes),
                conf.max_traceback_bytes,
                secrets,
            ),
            frames=_frames(error),
            fingerprint=Fingerprint.of_parts(
                mark.error_class[:200],
                mark.frame[:300],
                _clean(mark.template, MESSAGE_LENGTH, secrets),
            ),
        )

    @classmethod
    def synthetic(cls, error_class: str, message: str, *, job_type: str) -> Failure:
        """A failure without an exception, such as a worker that died."""
        name = f"jobqueue.{error_class}"
        return cls(
            error_class=name,
            message=_clean(message, MESSAGE_LENGTH, ()),
            traceback="",
            frames=[],
            fingerprint=Fingerprint.of_parts(name, job_type, error_class),
        )


def _format(error: BaseException, limit: int) -> str:
    """The traceback as text, from the handler's own frame on; never much over limit."""
    try:
        report = traceback.TracebackException(
            type(error), error, _without_ours(error), limit=-KEPT_FRAMES, compact=True
        )
        chunks = [_cut(chunk, limit) for chunk in report.format()]
    except Exception:
        return f"{class_name(error)}: <this exception cannot be formatted>\n"
    return "".join(chunks)


def _without_ours(error: BaseException) -> Any:
    """The traceback from the first frame on that is not this package's."""
    first = next(frames_of(error.__traceback__), None)
    step = error.__traceback__
    while first and step is not None and step.tb_frame is not first[0]:
        step = step.tb_next
    return step


def _frames(error: BaseException) -> list[dict[str, Any]]:
    kept = list(frames_of(error.__traceback__))[-KEPT_FRAMES:]
    return [
        {
            "file": _storable(frame.f_code.co_filename)[-300:],
            "line": line,
            "function": _storable(frame.f_code.co_qualname)[:200],
            "project": is_project_file(frame.f_code.co_filename),
        }
        for frame, line in kept
    ]


def _clean(text: str, limit: int, secrets: Iterable[str]) -> str:
    """Cut before the patterns run, so that 50 MB of text cost nothing, and after."""
    return _cut(mask_text(_storable(_cut(text, limit)), secrets), limit)


def _storable(text: str) -> str:
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()


def _cut(text: str, limit: int) -> str:
    """The text in at most ``limit`` bytes: its beginning and its end."""
    if len(text) <= limit // 4 or len(raw := text.encode("utf-8", "replace")) <= limit:
        return text
    note = f"\n… {len(raw) - limit:,} bytes cut …\n".encode()
    half = max((limit - len(note)) // 2, 0)
    kept = raw[:half] + note + raw[len(raw) - half :]
    return kept.decode("utf-8", "ignore")
