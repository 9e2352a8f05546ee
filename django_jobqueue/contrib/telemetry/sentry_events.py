"""Sentry's events: what is captured of a failure, and what is taken out of events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import sentry_sdk
from sentry_sdk.scope import should_send_default_pii
from sentry_sdk.utils import event_from_exception

from django_jobqueue.conf import conf
from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.domain.states import AttemptEnd
from django_jobqueue.exceptions import Fail
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.execution.attempt_outcome import NotWanted
from django_jobqueue.observers import LostAttempt
from django_jobqueue.text.json_reading import read_json
from django_jobqueue.text.redaction import mask_data, mask_json

FILTERED: Final = "[Filtered]"  # as Sentry's own scrubbers say
MECHANISM: Final = {"type": "django_jobqueue", "handled": False}
MASKED: Final = ("breadcrumbs", "logentry", "message", "extra")  # parts of an event


def is_event(
    outcome: Outcome, error: BaseException | None, capture_retries: bool
) -> bool:
    """True if an attempt that ended so is an event: at its final failure, but not by
    ``Fail`` without a cause, which a handler raises on purpose."""
    if outcome.verb is Verb.RETRY:
        return capture_retries and not outcome.handler_requested
    return outcome.verb is Verb.FAIL and not _is_deliberate(error)


def allows_data() -> bool:
    """True if the project wants the data of jobs in events, by ``data_collection`` or
    by the older ``send_default_pii``."""
    collected = sentry_sdk.get_client().options.get("data_collection") or {}
    if collected.get("provided_by_user"):
        return bool(collected.get("queues"))
    return bool(should_send_default_pii())


def _is_deliberate(error: BaseException | None) -> bool:
    if not isinstance(error, Fail) or error.__cause__ is not None:
        return False
    return error.__context__ is None or error.__suppress_context__


def tags_of(job_type: str, queue: str, attempt: int) -> dict[str, str]:
    """The tags of all events of an attempt."""
    return {"job_type": job_type, "queue": queue, "attempt": str(attempt)}


def capture(scope: sentry_sdk.Scope, attempt: Attempt, outcome: Outcome) -> None:
    """Capture the failure of an attempt, in its scope."""
    options = sentry_sdk.get_client().options
    event: dict[str, Any] = {"message": outcome.reason}
    hint: dict[str, Any] = {}
    if attempt.error is not None and not isinstance(attempt.error, NotWanted):
        event, hint = event_from_exception(
            attempt.error, client_options=options, mechanism=MECHANISM
        )
    job = attempt.job
    about = {
        "id": str(job.id),
        "attempt": job.attempts,
        "max_attempts": attempt.max_attempts,
        "crashes": job.crashes,
        "worker": attempt.worker,
        "reason": outcome.reason,
    }
    if allows_data():
        about["data"] = _data(attempt)
    _complete(event, outcome, about)
    sentry_sdk.capture_event(event, hint=hint)


def capture_lost(lost: LostAttempt) -> None:
    """Capture the failure of an attempt that could not do so itself: it has no stack,
    so it is grouped by what happened to which job type."""
    failure = lost.outcome.failure
    reason = lost.outcome.reason if failure is None else failure.message
    what = "crash" if lost.outcome.end is AttemptEnd.CRASHED else "lost"
    event: dict[str, Any] = {
        "transaction": lost.job_type,
        "transaction_info": {"source": "task"},
        "fingerprint": ["jobqueue", what, lost.job_type, reason],
        "tags": tags_of(lost.job_type, lost.queue, lost.attempt),
        "exception": {
            "values": [
                {
                    "type": "Failed" if failure is None else failure.error_class,
                    "value": reason,
                    "mechanism": MECHANISM,
                }
            ]
        },
    }
    about = {
        "id": str(lost.id),
        "attempt": lost.attempt,
        "crashes": lost.crashes,
        "worker": lost.worker,
        "reason": lost.outcome.reason,
    }
    _complete(event, lost.outcome, about)
    with sentry_sdk.isolation_scope() as scope:
        scope.clear_breadcrumbs()
        sentry_sdk.capture_event(event)


def _complete(event: dict[str, Any], outcome: Outcome, about: dict[str, Any]) -> None:
    event["level"] = "warning" if outcome.verb is Verb.RETRY else "error"
    event["contexts"] = {**event.get("contexts", {}), "job": about}
    tags = event.setdefault("tags", {})
    if conf.release:
        tags["worker_release"] = conf.release
    if outcome.mark is not None:
        tags["failure_group"] = str(outcome.mark.value)


class Masking:
    """Takes the data of a job out of the events of its attempt: the local variables,
    unless the project allows data, and what the admin would mask. Of types with
    sensitive data, also the texts of exceptions."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._is_sensitive = bool(attempt.declaration.policy.sensitive)

    def __call__(self, event: Any, hint: Any) -> Any:
        """Return the event without them."""
        for part in MASKED:
            if part in event:
                event[part] = self._masked(event[part])
        for exception in _exceptions(event):
            if self._is_sensitive:
                exception["value"] = FILTERED
            elif exception.get("value"):
                exception["value"] = self._masked(exception["value"])
        for frame in _frames(event):
            if "vars" in frame:
                self._mask_variables(frame)
        return event

    def _mask_variables(self, frame: dict[str, Any]) -> None:
        if self._is_sensitive or not allows_data():
            del frame["vars"]
        else:
            frame["vars"] = self._masked(frame["vars"])

    def _masked(self, value: Any) -> Any:
        sensitive = self._attempt.declaration.policy.sensitive
        return mask_json(value, sensitive, self._attempt.secrets)


def _exceptions(event: Any) -> list[Any]:
    return (event.get("exception") or {}).get("values") or []


def _frames(event: Any) -> Iterator[Any]:
    threads = (event.get("threads") or {}).get("values") or []
    for one in (*_exceptions(event), *threads):
        yield from (one.get("stacktrace") or {}).get("frames") or []


def _data(attempt: Attempt) -> Any:
    data = read_json(attempt.job.data)
    return mask_data(data, attempt.declaration.policy.sensitive)
