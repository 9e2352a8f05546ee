"""A bar that shows how far a job is: ``{% load job_progress %}``."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django import template
from django.core.exceptions import ImproperlyConfigured
from django.template import Context
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.ids import as_id
from django_jobqueue.domain.states import QueuedStatus
from django_jobqueue.exceptions import JobNotFound
from django_jobqueue.progress import Progress, progress_of, token
from django_jobqueue.text import timezones
from django_jobqueue.views import again

HOW: Final = (
    "{% job_progress %} asks your site how far the job is. Add "
    'path("jobs/", include("django_jobqueue.urls")) to your urls.'
)
WORDS: Final = {
    "queued": _("waiting"),
    "running": _("running"),
    "succeeded": _("done"),
    "failed": _("failed"),
    "expired": _("expired"),
    "cancelled": _("cancelled"),
    "gone": _("no longer known"),
}

register = template.Library()


@register.inclusion_tag("django_jobqueue/progress.html", takes_context=True)
def job_progress(
    context: Context, job: Any, label: str = "", url: str = "", reload: bool = False
) -> dict[str, Any]:
    """A bar for this job: a ``Job``, a row, a result of ``django.tasks``, an id, or a
    ``Progress``, which was read already.

    ``label`` says what is done. When the job has succeeded while somebody looks, the
    page goes to ``url``; with ``reload`` it is loaded again, whatever the end. Nothing
    is drawn for None. Raises InvalidArguments for what is no job, ImproperlyConfigured
    if the addresses are not included.
    """
    if not job:
        return {}
    id = as_id(getattr(job, "id", job))
    progress = job if isinstance(job, Progress) else _progress(id)
    is_over = progress is None or progress.is_over
    status = "gone" if progress is None else progress.status
    return {
        "id": id.hex,
        "progress": progress,
        "status": status,
        "words": WORDS,
        "word": WORDS[status],
        "value": _value(progress),
        "label": label or _("Progress"),
        "address": "" if is_over else _address(id),
        "again": progress and again(progress, timezones.now()),
        "url": url,
        "reload": reload,
        "csp_nonce": context.get("csp_nonce"),
    }


def _progress(id: UUID) -> Progress | None:
    try:
        return progress_of(id)
    except JobNotFound:
        return None


def _value(progress: Progress | None) -> float | None:
    """The fraction that the bar shows; None lets it move to and fro."""
    if progress is None:
        return 0.0
    if progress.fraction is None and progress.status == QueuedStatus.RUNNING:
        return None
    return progress.fraction or 0.0


def _address(id: UUID) -> str:
    try:
        return reverse("jobqueue:progress", args=[token(id)])
    except NoReverseMatch:
        raise ImproperlyConfigured(HOW) from None
