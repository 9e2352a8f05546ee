"""Counts the answers of endpoints in this process, until they are written."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from django_jobqueue.domain.series import Labels, Value

MINUTES: Final = 15  # for which they are counted in the database, as the admin says


class AnswerClass(TextChoices):
    """The answers of endpoints, and what there is instead of one."""

    SUCCESS = "2xx", "2xx"
    REDIRECT = "3xx", "3xx"
    REFUSAL = "4xx", "4xx"
    ERROR = "5xx", "5xx"
    OTHER = "other", _("another status")
    TIMEOUT = "timeout", pgettext_lazy("answer", "timeout")
    NO_NAME = "dns", _("name not found")
    REFUSED = "refused", _("connection refused")
    TLS = "tls", _("TLS failed")
    UNREACHABLE = "unreachable", _("not reached")
    BROKEN = "broken", _("connection broken")


@dataclass(frozen=True, slots=True)
class EndpointAnswer:
    """How a request to an endpoint ended."""

    answer_class: AnswerClass
    status: int | None  # of HTTP; None without an answer
    seconds: float  # that it took
    problem: str = ""  # why there is no answer
    ended: float = field(default_factory=time.monotonic)

    @classmethod
    def of_status(cls, status: int, seconds: float) -> EndpointAnswer:
        """An answer with this status."""
        return cls(class_of(status), status, seconds)

    @property
    def has_failed(self) -> bool:
        """True if it is anything but a success."""
        return self.answer_class is not AnswerClass.SUCCESS


@dataclass(slots=True)
class AnswerCount:
    """The answers of one endpoint since they were last written."""

    last: EndpointAnswer
    last_failure: EndpointAnswer | None = None
    answers: int = 0
    failed: int = 0

    def add(self, answer: EndpointAnswer) -> None:
        """Count this one, which is the newest."""
        self.last = answer
        self.answers += 1
        if answer.has_failed:
            self.last_failure = answer
            self.failed += 1

    def add_earlier(self, earlier: AnswerCount) -> None:
        """Count these, too, which came before."""
        self.answers += earlier.answers
        self.failed += earlier.failed
        self.last_failure = self.last_failure or earlier.last_failure


class EndpointAnswers:
    """The event loops of a process add answers; its completer takes and writes them.

    A push so costs no statement. Without a completer nothing takes them, and they have
    the room of one count for each endpoint.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything: in a child process, all is its parent's."""
        self._lock = threading.Lock()
        self._unwritten: dict[str, AnswerCount] = {}
        self._totals: Counter[Labels] = Counter()

    def __bool__(self) -> bool:
        return bool(self._unwritten)

    def add(self, endpoint: str, answer: EndpointAnswer) -> None:
        """An endpoint has answered, or not."""
        with self._lock:
            count = self._unwritten.get(endpoint)
            if count is None:
                count = self._unwritten[endpoint] = AnswerCount(answer)
            count.add(answer)
            self._totals[endpoint, answer.answer_class.value] += 1

    def take(self) -> dict[str, AnswerCount]:
        """Those that are not written, by endpoint; whoever takes them writes them, or
        gives them back."""
        with self._lock:
            taken, self._unwritten = self._unwritten, {}
        return taken

    def give_back(self, taken: Mapping[str, AnswerCount]) -> None:
        """These could not be written."""
        with self._lock:
            for endpoint, earlier in taken.items():
                count = self._unwritten.setdefault(endpoint, earlier)
                if count is not earlier:
                    count.add_earlier(earlier)

    @property
    def totals(self) -> dict[Labels, Value]:
        """All answers since the process started, by endpoint and class."""
        with self._lock:
            return {**self._totals}


def class_of(status: int) -> AnswerClass:
    """The class of a status of HTTP."""
    return _BY_HUNDRED.get(status // 100, AnswerClass.OTHER)


_BY_HUNDRED: Final = {
    2: AnswerClass.SUCCESS,
    3: AnswerClass.REDIRECT,
    4: AnswerClass.REFUSAL,
    5: AnswerClass.ERROR,
}

endpoint_answers: Final = EndpointAnswers()
os.register_at_fork(after_in_child=endpoint_answers.reset)
