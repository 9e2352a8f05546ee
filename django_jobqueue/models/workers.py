"""Worker processes and their hosts: states, plans, and operators' requests."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from django_jobqueue.domain.states import ALIVE, WITHOUT_SLOTS, HostState, WorkerState
from django_jobqueue.models.fields import ClockTimestamp, JSONField, UTCDateTimeField


class Worker(models.Model):
    """One process doing jobs. Its claims hold as long as ``lease_until`` is ahead."""

    id = models.BigAutoField(primary_key=True)
    remote = models.BooleanField(
        _("remote"),
        db_default=False,
        help_text=_("Another program that works over the HTTP API."),
    )
    # Of a remote worker: the caller that registered it, and how long its lease is.
    owner = models.TextField(_("owner"), db_default="")
    lease_seconds = models.FloatField(_("lease"), null=True, blank=True)
    name = models.CharField(_("name"), max_length=200)  # host:pid
    host = models.CharField(_("host"), max_length=200)
    pid = models.IntegerField(_("process id"))
    # Which process of which start of which machine this is, so that a successor on the
    # same host knows a dead predecessor for certain.
    identity = models.CharField(_("identity"), max_length=200, db_default="")
    supervisor = models.CharField(_("supervisor"), max_length=200, db_default="")
    release = models.CharField(_("release"), max_length=100, db_default="")
    queues = JSONField(_("queues"), null=True, blank=True)  # null is every queue
    job_types = JSONField(_("job types"), db_default=[])
    threads = models.IntegerField(_("threads"), db_default=0)
    async_slots = models.IntegerField(_("async slots"), db_default=0)
    versions = JSONField(_("versions"), db_default={})
    started_at = UTCDateTimeField(_("started at"), db_default=ClockTimestamp())
    renewed_at = UTCDateTimeField(_("renewed at"), db_default=ClockTimestamp())
    lease_until = UTCDateTimeField(_("lease until"), db_default=ClockTimestamp())
    stopped_at = UTCDateTimeField(_("stopped at"), null=True, blank=True)
    state = models.CharField(
        _("state"),
        max_length=10,
        choices=WorkerState.choices,
        db_default=WorkerState.RUNNING,
    )
    end = models.TextField(_("how it ended"), db_default="")
    # How many of the jobs that it held then were queued again, failed or were cancelled
    rescued = JSONField(_("results of its jobs"), db_default={})
    running = models.IntegerField(_("running"), db_default=0)
    rss = models.BigIntegerField(_("memory"), db_default=0)  # bytes
    listening = models.BooleanField(
        _("listening"),
        db_default=False,
        help_text=_("The worker is idle and waits to be notified of new jobs."),
    )
    # Of an endpoint: its last answer and its last failure, and how many there were, for
    # each of the last minutes.
    answers = JSONField(_("answers"), db_default={})
    # The control channel: what operators ask, and what came of it.
    desired = models.CharField(_("asked to"), max_length=10, db_default="")
    request = JSONField(_("request"), null=True, blank=True)
    stack_dump = JSONField(_("stack dump"), null=True, blank=True)

    class Meta:
        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        required_db_vendor = "postgresql"
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["name"],
                condition=models.Q(state="endpoint"),
                name="jobqueue_one_endpoint",
            )
        ]
        permissions = [
            ("control_worker", "Can ask workers to drain, stop or restart"),
            ("work_remotely", "Can do jobs as a remote worker, over HTTP"),
        ]

    def keeps_its_jobs(self, now: datetime) -> bool:
        """True if nobody may take its jobs: it lives, or it is an endpoint or a move,
        whose jobs have deadlines of their own."""
        if self.state in WITHOUT_SLOTS:
            return True
        return self.state in ALIVE and self.lease_until > now

    def __str__(self) -> str:
        return self.name


class Host(models.Model):
    """One ``runworkers``, or the embedded worker of another program."""

    id = models.UUIDField(primary_key=True)  # the same after a restart
    name = models.CharField(_("name"), max_length=200)  # host:pid
    host = models.CharField(_("host"), max_length=200)
    # The start of this machine, the process namespace, the process and its start: the
    # same host knows a dead predecessor for certain. Kept by ``exec``, as is the id.
    identity = models.CharField(_("identity"), max_length=200, db_default="")
    embedded = models.BooleanField(_("embedded"), db_default=False)
    release = models.CharField(_("release"), max_length=100, db_default="")
    processes = models.IntegerField(_("processes"), db_default=0)
    threads = models.IntegerField(_("threads"), db_default=0)  # of each process
    async_slots = models.IntegerField(_("async slots"), db_default=0)  # the same
    queues = JSONField(_("queues"), null=True, blank=True)  # null is every queue
    state = models.CharField(
        _("state"),
        max_length=10,
        choices=HostState.choices,
        db_default=HostState.RUNNING,
    )
    started_at = UTCDateTimeField(_("started at"), db_default=ClockTimestamp())
    renewed_at = UTCDateTimeField(_("renewed at"), db_default=ClockTimestamp())
    lease_until = UTCDateTimeField(_("lease until"), db_default=ClockTimestamp())
    stopped_at = UTCDateTimeField(_("stopped at"), null=True, blank=True)
    # The control channel. Operators add to what is desired; ``number`` counts their
    # requests. The host says which part it has applied, and why not the rest.
    desired = JSONField(_("asked for"), db_default={})
    applied = JSONField(_("applied"), db_default={})
    error = models.TextField(_("error"), db_default="")

    class Meta:
        verbose_name = pgettext_lazy("of workers", "host")
        verbose_name_plural = pgettext_lazy("of workers", "hosts")
        required_db_vendor = "postgresql"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.name

    @property
    def pending(self) -> dict[str, Any]:
        """The requests that are not applied yet."""
        # People may have written anything else by hand.
        desired = self.desired if isinstance(self.desired, dict) else {}
        applied = self.applied if isinstance(self.applied, dict) else {}
        return {
            key: value
            for key, value in desired.items()
            if key not in applied or applied[key] != value
        }
