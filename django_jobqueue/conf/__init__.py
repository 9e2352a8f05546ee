"""Every setting: its name, default, kind and meaning, read from ``settings.JOBQUEUE``.

Times are seconds. The environment variable of a setting (``JOBQUEUE_LEASE`` for
``LEASE``) wins over the dict. ``manage.py runworkers`` has a flag of the same name for
every setting (``--lease``), which wins over both, in that command and in the worker
processes that it starts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed

from django_jobqueue.conf.alert_channels import AlertChannels, OwnUrl
from django_jobqueue.conf.endpoints import Endpoints
from django_jobqueue.conf.fairness_settings import FairnessSettings
from django_jobqueue.conf.setting_types import (
    CAPTURES,
    CENTURY,
    DAY,
    GREATEST,
    Alias,
    Bytes,
    Captures,
    Count,
    Flag,
    Folders,
    LogFormat,
    Mode,
    Names,
    Pattern,
    Retention,
    RetentionCount,
    Seconds,
    Setting,
    Text,
    TraceRelation,
    UrlTemplate,
)
from django_jobqueue.text.url_templates import ISSUE_FIELDS, REPORT_FIELDS

__all__ = [
    "CAPTURES",
    "CENTURY",
    "GREATEST",
    "Conf",
    "Count",
    "Flag",
    "Names",
    "Retention",
    "Seconds",
    "Setting",
    "Text",
    "conf",
]


class Override:
    """The end of a ``with`` block brings back the values that were overridden."""

    def __init__(self, conf: Conf, before: dict[str, Any]) -> None:
        self._conf = conf
        self._before = before

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None:
        self._conf._set(self._before)


class Conf(FairnessSettings):
    """The settings in force: flags first, then variables of the environment, then
    ``settings.JOBQUEUE``, then defaults.

    What is of another kind than its setting counts as not given, so that a project with
    a mistake starts and its system checks can tell.
    """

    database = Alias(
        None,  # type: ignore[arg-type]
        "Alias of the jobs' database; None asks DATABASE_ROUTERS.",
        optional=True,
    )
    modules = Names[list[str]](
        ["jobs"], "Modules of each app that are searched for handlers."
    )
    mode = Mode(
        "queue",
        "How an enqueue works: queue stores the job for a worker; immediate runs it at "
        "once in the caller's process; on_commit runs it there after the commit. "
        "The latter two need no PostgreSQL; they are for tests and for development.",
    )
    queues = Names[list[str] | None](
        None, "Queues to claim from; None is every queue.", optional=True
    )
    processes = Count[int](1, "Worker processes of one runworkers.", minimum=1)
    threads = Count[int](
        4, "Threads for sync handlers in each worker process.", minimum=0
    )
    async_slots = Count[int](
        100, "Async handlers that a worker process runs at once.", minimum=0
    )
    max_jobs = Count[int | None](
        None,
        "A worker process that has run this many attempts is replaced; None is never.",
        minimum=1,
        optional=True,
    )
    max_age = Seconds[float | None](
        None,
        "A worker process that has lived this long is replaced; None is never.",
        minimum=1,
        optional=True,
    )
    max_memory = Bytes[int | None](
        None,
        "A worker process whose resident memory, in bytes, is larger is replaced; None "
        "is never. As a flag or a variable also 512MB.",
        minimum=1 << 20,
        optional=True,
    )
    embedded = Flag[bool](
        True,
        "Whether embedded.asgi() and embedded.wsgi() start a worker in serving "
        "processes.",
    )
    lease = Seconds[float](
        15.0,
        "How long a worker's claims hold without renewal. The jobs of a lost host run "
        "again after this time; a database outage of up to 0.4 of it makes no job run "
        "again.",
        minimum=2,
    )
    poll_interval = Seconds[float](
        5.0,
        "Longest pause between two polls for work, by one of the idle workers of a "
        "host; at most one second while LISTEN cannot be used.",
        minimum=0.05,
    )
    listen = Flag[bool | None](
        None,
        "Use LISTEN/NOTIFY; None tries it at start, and polls if it does not work.",
        optional=True,
    )
    grace = Seconds[float](
        30.0, "How long running jobs may go on after the first stop signal.", minimum=0
    )
    cancel_grace = Seconds[float](
        1.0, "How long a handler has to stop after it was asked to.", minimum=0
    )
    max_attempts = Count[int | None](
        5,
        "Attempts of job types without their own limit; None is unlimited.",
        minimum=1,
        optional=True,
    )
    timeout = Seconds[float | None](
        3_600.0,
        "Timeout of job types without their own; None is no time limit.",
        minimum=0.01,
        optional=True,
    )
    max_crashes = Count[int](
        3, "A job whose worker died this often is archived as failed.", minimum=1
    )
    capture = Captures(
        (),
        "What a handler inherits from the enqueueing code: the language, the time "
        "zone, the tenant of django-tenants. Stored in the job's metadata.",
    )
    middleware = Names[list[str]](
        [],
        "Dotted paths of the middleware around every handler, the outermost first. "
        "Each is a factory, as in Django.",
    )
    max_data_bytes = Count[int](
        1_000_000, "Maximum size of a job's data, in bytes of JSON text.", minimum=2
    )
    max_result_bytes = Count[int](
        65_536,
        "Maximum size of a stored result, in bytes of JSON text; of a larger one only "
        "the size is stored.",
        minimum=64,
    )
    max_traceback_bytes = Count[int](
        65_536,
        "Maximum size of a stored traceback, in bytes; a longer one is cut in the "
        "middle.",
        minimum=256,
    )
    prefetch = Seconds[float](
        0.05,
        "How much work, in time, a worker process may claim ahead of its free slots; "
        "only of job types whose runs are short. 0 claims nothing ahead.",
        minimum=0,
    )
    retention = Retention[float](
        {
            "succeeded": 7 * DAY,
            "failed": 90 * DAY,
            "expired": 30 * DAY,
            "cancelled": 30 * DAY,
        },
        "How long archived jobs are kept, by status; None is forever.",
    )
    retention_count = RetentionCount(
        {"succeeded": None, "failed": None, "expired": None, "cancelled": None},
        "How many archived jobs of each job type are kept, by status; None is any "
        "number. The oldest go first.",
    )
    audit_retention = Seconds[float | None](
        365 * DAY,
        "How long the audit, finished bulk operations, and revoked or expired tokens "
        "are kept; None is forever.",
        minimum=0,
        optional=True,
    )
    schedules = Flag[bool](
        True, "Whether this host fires schedules. A staging copy should not."
    )
    prune_interval = Seconds[float](
        300.0, "Pause between two prunes of the archive.", minimum=1
    )
    release = Text[str](
        "", "Version of your project; recorded with attempts and workers.", maximum=100
    )
    project_roots = Folders[list[str]](
        [],
        "Folders whose code counts as your own in failures; empty: every file outside "
        "the standard library and site-packages.",
    )
    dump_dir = Text[str | None](
        None,
        "Folder for a JSON list of the jobs that a stop cut off; None logs them.",
        optional=True,
    )
    log_format = LogFormat(
        "text",
        "How runworkers writes its log, unless LOGGING configures django_jobqueue.",
    )
    log_successes = Flag[bool](
        False, "Log successful attempts, too. A line costs some microseconds."
    )
    heartbeat_file = Text[str | None](
        None,
        "A file that runworkers touches every five seconds while it lives, and removes "
        "at its end.",
        optional=True,
    )
    statement_timeout = Seconds[float](
        10.0, "Time limit of each of a worker's own database calls.", minimum=1
    )
    alert_wait = Seconds[float](
        300.0,
        "The overview warns of job types whose oldest ready job has waited longer.",
        minimum=1,
    )
    alert_failed = Count[int](
        5,
        "The overview warns of job types of which more than this percentage failed in "
        "the last hour.",
        minimum=0,
        maximum=100,
    )
    alert_transaction = Seconds[float](
        3_600.0,
        "The overview warns of a transaction that has been open for longer.",
        minimum=60,
    )
    alerts = AlertChannels("Channels of alerts, as dicts; in a variable, JSON.")
    site_url = OwnUrl(
        "Address of your site, for the links to the admin in alerts, and for the "
        "callbacks of endpoints."
    )
    heartbeat_url = OwnUrl("Address to request once a minute while maintenance runs.")
    endpoints = Endpoints(
        "Programs to which jobs are sent, as dicts by name; in a variable, JSON."
    )
    admin_statement_timeout = Seconds[float](
        10.0,
        "Time limit of each database call of an admin page; a page that exceeds it "
        "says so.",
        minimum=0.1,
    )
    tracker_url = UrlTemplate(
        "Address of your tracker's form for a new issue, with fields such as {title} "
        "and {body}; None shows no link.",
        fields=REPORT_FIELDS,
    )
    tracker_issue_url = UrlTemplate(
        "Address of an issue in your tracker, with {id}; names of issues in notes and "
        "reasons become links to it. None leaves them as they are.",
        fields=ISSUE_FIELDS,
        needs="id",
    )
    tracker_issue_pattern = Pattern(
        r"\b([A-Z][A-Z0-9]+-[0-9]+)\b|(?<![\w&])#([0-9]+)\b",  # type: ignore[arg-type]  # compiled when it is read
        "Regular expression of the names of issues in notes; {id} is the first group "
        "that matched, or else the whole match.",
    )
    progress_max_age = Seconds[float | None](
        DAY,
        "How long a page may poll the progress of a job; None is forever.",
        minimum=1,
        optional=True,
    )

    trace_relation = TraceRelation(
        "parent",
        "How an attempt's span relates to the enqueue's: parent puts it into the same "
        "trace; link begins its own trace with a link.",
    )
    trace_baggage = Flag[bool](
        False,
        "Whether OpenTelemetry's baggage is stored with the job. People keep user ids "
        "in it.",
    )

    def __init__(self) -> None:
        self._flags: dict[str, Any] = {}
        self._values: dict[str, Any] | None = None
        setting_changed.connect(self._changed)

    def override(self, flags: Mapping[str, Any]) -> Override:
        """Let these values win over the settings, in this process and its children: for
        good, or until the end of the block where a ``with`` statement calls it."""
        override = Override(self, self._flags)
        self._set({**self._flags, **flags})
        return override

    def _set(self, flags: dict[str, Any]) -> None:
        self._flags = flags
        self._forget()

    def _forget(self) -> None:
        self._values = None
        for name in self.settings:
            vars(self).pop(name.lower(), None)

    def read(self, name: str) -> Any:
        """The value in force, as it was written."""
        if self._values is None:
            self._values = {**self._configured(), **self._flags}
        return self._values.get(name, self.settings[name].default)

    def _configured(self) -> dict[str, Any]:
        given = getattr(settings, "JOBQUEUE", None)
        values = {
            name: value
            for name, value in (given.items() if isinstance(given, dict) else ())
            if name in self.settings and self.settings[name].allows_type(value)
        }
        for setting, value in self.of_environment():
            if not setting.problem(value):
                values[setting.name] = setting.over(values.get(setting.name), value)
        return values

    def of_environment(self) -> Iterator[tuple[Setting[Any], Any]]:
        """Settings that the environment has values for, with these, right or wrong. An
        empty variable is as good as none: that is what ``${NAME:-}`` makes."""
        for setting in self.settings.values():
            if text := os.environ.get(setting.variable):
                yield setting, setting.parse(text)

    def _changed(self, *, setting: str, **kwargs: Any) -> None:
        if setting in ("JOBQUEUE", "DATABASE_ROUTERS"):
            self._forget()


conf = Conf()
