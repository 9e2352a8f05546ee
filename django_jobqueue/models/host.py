"""Hosts: each runworkers and embedded worker, its plan, and operators' requests."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from django_jobqueue.domain.states import HostState
from django_jobqueue.models.column_defaults import ClockTimestamp
from django_jobqueue.models.fields import JSONField, UTCDateTimeField


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
        """What was asked for and is not applied yet."""
        # People may have written anything else by hand.
        desired = self.desired if isinstance(self.desired, dict) else {}
        applied = self.applied if isinstance(self.applied, dict) else {}
        return {
            key: value
            for key, value in desired.items()
            if key not in applied or applied[key] != value
        }
