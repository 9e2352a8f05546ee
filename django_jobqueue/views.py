"""The progress of a job as JSON, for the pages of your site."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from django.core.signing import BadSignature, SignatureExpired
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from django_jobqueue.exceptions import JobNotFound
from django_jobqueue.progress import Progress, id_of, progress_of
from django_jobqueue.text import timezones

SOONEST: Final = 1.0  # seconds until the next question
LATEST: Final = 15.0
PATIENCE: Final = 10.0  # of what changed a minute ago, ask again in six seconds


@require_safe
@never_cache
def progress(request: HttpRequest, token: str) -> JsonResponse:
    """How far the job is that the token was made for. Whoever has the token may know;
    never data, results or errors.

    404 for a job that is not kept any more and for no token of this site, 410 for one
    that is too old.
    """
    try:
        current = progress_of(id_of(token))
    except SignatureExpired:
        return _problem(410, "The token is too old. Load the page again.")
    except (BadSignature, JobNotFound):
        return _problem(404, "There is no such job, or it is not kept any more.")
    return JsonResponse(
        {
            "status": current.status,
            "is_over": current.is_over,
            "done": current.done,
            "total": current.total,
            "fraction": current.fraction,
            "text": current.text,
            "note": current.note,
            "again": again(current, timezones.now()),
        }
    )


def again(progress: Progress, now: datetime) -> float | None:
    """Seconds after which it is worth while to ask again; None when it is over. The
    longer nothing has changed, or will change, the more."""
    if progress.is_over:
        return None
    moment = progress.updated_at or progress.since
    distance = abs((now - moment).total_seconds())
    return round(min(LATEST, max(SOONEST, distance / PATIENCE)), 1)


def _problem(status: int, text: str) -> JsonResponse:
    body: dict[str, Any] = {"problem": text}
    return JsonResponse(body, status=status)
