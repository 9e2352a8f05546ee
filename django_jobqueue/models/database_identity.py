"""The database that the hosts work on: one row, which a dump takes along."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_jobqueue.models.fields import ClockTimestamp, UTCDateTimeField


class NoRows(models.Manager["DatabaseIdentity"]):
    """For ``dumpdata``, which reads the default manager: in another database, its row
    would put hosts to sleep."""

    def get_queryset(self) -> models.QuerySet[DatabaseIdentity]:
        """Nothing."""
        return super().get_queryset().none()


class DatabaseIdentity(models.Model):
    """The identity of the database in which hosts have worked, or none where operators
    have put them to sleep. In a restored dump it is that of the original."""

    id = models.PositiveSmallIntegerField(_("id"), primary_key=True)
    identity = models.TextField(_("identity"))
    server_version = models.PositiveIntegerField(_("version of the server"))
    written_at = UTCDateTimeField(_("written at"), db_default=ClockTimestamp())

    for_fixtures = NoRows()
    objects = models.Manager["DatabaseIdentity"]()

    class Meta:
        verbose_name = _("identity of the database")
        verbose_name_plural = _("identities of the database")
        required_db_vendor = "postgresql"
        default_permissions = ()

    def __str__(self) -> str:
        return self.identity
