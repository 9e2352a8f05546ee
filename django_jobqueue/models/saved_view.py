"""What somebody narrowed a list of the admin by, under a name."""

from __future__ import annotations

from typing import Final

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from django_jobqueue.models.fields import ClockTimestamp, UTCDateTimeField

LONGEST_NAME: Final = 60  # characters
LONGEST_QUERY: Final = 2_000


class SavedView(models.Model):
    """The query string of a list, for its owner, or for all who may see the list."""

    id = models.BigAutoField(primary_key=True)
    list = models.CharField(_("list"), max_length=20)
    name = models.CharField(_("name"), max_length=LONGEST_NAME)
    query = models.CharField(_("query"), max_length=LONGEST_QUERY)
    owner = models.TextField(_("owner"))
    is_shared = models.BooleanField(_("shared"), db_default=False)
    created_at = UTCDateTimeField(_("created"), db_default=ClockTimestamp())

    class Meta:
        verbose_name = _("saved view")
        verbose_name_plural = _("saved views")
        required_db_vendor = "postgresql"
        default_permissions = ("add",)
        permissions = [
            ("share_savedview", "Can share saved views, and change shared ones"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "list", "name"], name="jobqueue_v_name"
            ),
        ]
        indexes = [
            models.Index(
                fields=["list"], condition=Q(is_shared=True), name="jobqueue_v_shared"
            ),
        ]

    def __str__(self) -> str:
        return self.name
