"""An alert, and the notification that brings it to people: alone, or in a digest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.urls import NoReverseMatch, reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_jobqueue.conf import conf
from django_jobqueue.contrib.alerts.alert_rows import MOST_LISTED, News
from django_jobqueue.contrib.alerts.states import AlertEvent
from django_jobqueue.domain.states import AlertCondition
from django_jobqueue.stats.conditions import new_crash_text
from django_jobqueue.text.numbers import number, span
from django_jobqueue.text.sanitizing import visible

LONGEST_ERROR: Final = 500  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An alert, with the event that it is announced for. No data of jobs is in it."""

    id: UUID
    event: str  # fired, repeated or resolved
    condition: str  # such as backlog
    subject: str  # the queue, job type or failure group
    text: str  # a sentence
    error: str = ""  # the message of a new failure, without its secrets
    job_type: str = ""  # of a new failure
    fired_at: datetime
    resolved_at: datetime | None = None
    url: str = ""  # of its page in the admin

    @property
    def line(self) -> str:
        """One line of text for people."""
        if self.event == AlertEvent.RESOLVED:
            end = self.resolved_at or datetime.now(UTC)
            lasted = span((end - self.fired_at).total_seconds())
            over = _("Resolved after %(time)s: %(text)s")
            return over % {"time": lasted, "text": self.text}
        if self.event == AlertEvent.REPEATED:
            return _("Still firing: %(text)s") % {"text": self.text}
        return self.text

    def as_json(self) -> dict[str, Any]:
        """As webhooks have it."""
        end = self.resolved_at
        return {
            "id": str(self.id),
            "event": str(self.event),
            "condition": str(self.condition),
            "subject": self.subject,
            "text": self.text,
            "error": self.error,
            "job_type": self.job_type,
            "fired_at": self.fired_at.isoformat(),
            "resolved_at": None if end is None else end.isoformat(),
            "url": self.url,
        }


class Notification(NamedTuple):
    """What is sent to a channel at once: an alert, or the first ones of a digest."""

    id: UUID  # the same in each attempt
    alerts: Sequence[Alert]
    others: int = 0  # of a digest, not listed
    is_test: bool = False

    @property
    def is_digest(self) -> bool:
        """True if it has several alerts."""
        return len(self.alerts) + self.others > 1

    @property
    def title(self) -> str:
        """One line without line breaks."""
        if not self.is_digest:
            return " ".join(self.alerts[0].line.split())
        count = len(self.alerts) + self.others
        text = ngettext("%(count)s alert", "%(count)s alerts", count)
        return text % {"count": number(count)}

    @property
    def text(self) -> str:
        """Lines for people: each alert, its error and its page."""
        lines = [self.title, ""] if self.is_digest else []
        for alert in self.alerts:
            lines += [alert.line]
            if alert.error:
                lines += [f"  {alert.error}"]
            if alert.url:
                lines += [f"  {alert.url}"]
        if self.others:
            text = ngettext("and %(count)s other", "and %(count)s others", self.others)
            lines += [text % {"count": number(self.others)}]
        return "\n".join(lines)

    @property
    def type(self) -> str:
        """The type of the event, as webhooks have it."""
        if self.is_test:
            return "jobqueue.test"
        if self.is_digest:
            return "jobqueue.digest"
        return f"jobqueue.{self.alerts[0].condition}.{self.alerts[0].event}"

    def as_json(self, now: datetime) -> dict[str, Any]:
        """The body of a webhook."""
        if not self.is_digest:
            data = self.alerts[0].as_json()
        else:
            listed = [alert.as_json() for alert in self.alerts]
            data = {"alerts": listed, "others": self.others}
        return {"type": self.type, "timestamp": now.isoformat(), "data": data}


def alert_of(news: News) -> Alert:
    """The alert as it is announced, in the language that is active."""
    return Alert(
        id=news.id,
        event=news.event,
        condition=news.condition,
        subject=news.subject,
        text=_in_a_line(news.text or _text(news)),
        error=_in_a_line(news.template)[:LONGEST_ERROR],
        job_type=news.job_type,
        fired_at=news.fired_at,
        resolved_at=news.resolved_at,
        url=url_of(news),
    )


def notification_of(id: UUID, news: Sequence[News]) -> Notification:
    """Alerts that are sent together."""
    listed = [alert_of(one) for one in news[:MOST_LISTED]]
    return Notification(id=id, alerts=listed, others=len(news) - len(listed))


class Place(NamedTuple):
    """The page of the admin about an alert: a list, unless there is a key."""

    model: str  # in lower case, as addresses have it
    query: dict[str, str] = {}  # noqa: RUF012 - of the list
    key: str = ""


def place_of(condition: str, subject: str) -> Place:
    """Where to look at what an alert is about."""
    match condition:
        case AlertCondition.FAILURE_GROUP | AlertCondition.REGRESSION:
            return Place("failuregroup", key=subject)
        case AlertCondition.BACKLOG:
            return Place("queuedjob", {"queue": subject})
        case AlertCondition.NO_WORKER:
            return Place("worker")
        case AlertCondition.FAILING:
            return Place("archivedjob", {"status": "failed", "job_type": subject})
        case AlertCondition.CRASHING:
            return Place("failuregroup", {"q": subject})
        case _:
            return Place("overview")


def url_of(news: News) -> str:
    """The page of the admin about an alert; empty if nobody has said where it is."""
    if not conf.site_url:
        return ""
    place = place_of(news.condition, news.subject)
    try:
        if place.key:
            path = reverse(f"admin:jobqueue_{place.model}_change", args=[place.key])
        else:
            path = reverse(f"admin:jobqueue_{place.model}_changelist")
    except NoReverseMatch:  # the project has no admin
        return ""
    query = f"?{urlencode(place.query)}" if place.query else ""
    return f"{conf.site_url.rstrip('/')}{path}{query}"


def _in_a_line(text: str) -> str:
    """Without lines and hidden characters of its own: what a remote worker says stands
    in mails of operators."""
    return visible(" ".join(text.split()))


def _text(news: News) -> str:
    """The sentence about a failure group. It may be deleted by now."""
    is_new = news.condition == AlertCondition.FAILURE_GROUP
    if is_new and (crash := new_crash_text(news.error_class, news.frame)):
        return crash
    where = f"{news.error_class} in {news.frame}" if news.error_class else news.subject
    if news.condition == AlertCondition.REGRESSION:
        return _("A resolved failure is back: %(failure)s") % {"failure": where}
    return _("A new failure: %(failure)s") % {"failure": where}
