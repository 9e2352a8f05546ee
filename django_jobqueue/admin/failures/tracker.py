"""The address at which a tracker takes an issue about a failure group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext as _

from django_jobqueue.admin.parts import display
from django_jobqueue.admin.parts.linked_text import REL
from django_jobqueue.conf import conf
from django_jobqueue.models import FailureGroup
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import failure_stats
from django_jobqueue.store.reading.failure_stats import MOST_BROKEN_DOWN, Share
from django_jobqueue.text import numbers
from django_jobqueue.text.url_templates import filled

# Characters; a server may refuse an address of more than eight thousand, and a letter
# takes up to twelve of them.
LONGEST_TITLE: Final = 150
LONGEST_MESSAGE: Final = 300


def report_url(
    request: HttpRequest,
    group: FailureGroup,
    shares: Iterable[Share],
    *,
    error: tuple[str, str] = ("", ""),
    job_type: str = "",
    page: str = "",
) -> str:
    """The address, filled for this group; empty if there is no tracker.

    A job gives its own ``error`` (class and message, fit to be shown), type and page.
    """
    template = conf.tracker_url
    if not template:
        return ""
    counts: Counter[str] = Counter()
    for share in shares:
        counts[share.job_type] += share.failures
    frequent = next((name for name, _count in counts.most_common(1)), "")
    name, message = error if any(error) else _error_of(group)
    own_page = page or display.url_of("failuregroup", group.pk)
    values = {
        "title": _title(name, message),
        "fingerprint": str(group.pk),
        "job_type": display.visible(job_type or frequent),
        "url": request.build_absolute_uri(own_page),
        "count": _number(counts.total()),
        "first": display.exact(group.first_seen),
        "last": display.exact(group.last_seen),
    }
    values["body"] = _body(name, message, display.visible(group.frame), values)
    return filled(template, values)


def report_link(
    request: HttpRequest, fingerprint: Any, error: tuple[str, str], **job: str
) -> Any:
    """The same for the failure of a job, as a link; empty if there is no tracker."""
    if not conf.tracker_url:
        return ""
    group = FailureGroup._default_manager.filter(pk=fingerprint).first()
    if group is None:
        return ""
    shares = failure_stats.break_down(DjangoDatabase(), group.pk)
    url = report_url(request, group, shares, error=error, **job)
    link = '<a href="{}" rel="{}">{}</a>'
    return format_html(link, url, REL, _("Report in tracker"))


def _error_of(group: FailureGroup) -> tuple[str, str]:
    return display.shown_text(group.error_class), display.shown_text(group.template)


def _title(name: str, message: str) -> str:
    """ "Declined: the bank is closed"."""
    parts = (name.rpartition(".")[2], message.strip().partition("\n")[0])
    return _shortened(": ".join(filter(None, parts)), LONGEST_TITLE)


def _body(name: str, message: str, frame: str, values: dict[str, str]) -> str:
    """The facts for a reader who does not know the job queue."""
    whole = ": ".join(filter(None, (name, _shortened(message, LONGEST_MESSAGE))))
    lines = (
        whole,
        _("Place: %(place)s") % {"place": frame},
        _("Job type: %(name)s") % {"name": values["job_type"]},
        _("Failures: %(count)s") % {"count": values["count"]},
        _("First seen: %(time)s") % {"time": values["first"]},
        _("Last seen: %(time)s") % {"time": values["last"]},
    )
    return "\n".join((*lines, "", values["url"]))


def _number(failures: int) -> str:
    """How many of the newest ones were counted."""
    more = "+" if failures >= MOST_BROKEN_DOWN else ""
    return f"{numbers.number(failures)}{more}"


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
