"""Tokens: which programs may use the HTTP API, and what for."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_jobqueue.contrib.http.token_scopes import TOKEN_NAME_LENGTH
from django_jobqueue.models.fields import (
    ClockTimestamp,
    JSONField,
    UTCDateTimeField,
    is_readable,
)


class Token(models.Model):
    """A program's key to the HTTP API. Its secret is shown once, when it is made."""

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(_("name"), max_length=TOKEN_NAME_LENGTH)
    digest = models.CharField(
        _("digest"), max_length=64, help_text=_("SHA-256 of the secret.")
    )
    scopes = JSONField(_("scopes"), db_default=[], help_text=_("What it allows."))
    job_types = JSONField(
        _("job types"),
        db_default=[],
        help_text=_("Patterns of job types. Empty: every job type."),
    )
    queues = JSONField(
        _("queues"),
        db_default=[],
        help_text=_("Patterns of queues. Empty: every queue."),
    )
    created_at = UTCDateTimeField(_("created at"), db_default=ClockTimestamp())
    created_by = models.TextField(_("created by"), db_default="")
    expires_at = UTCDateTimeField(_("expires at"), null=True, blank=True)
    last_used_at = UTCDateTimeField(
        _("last used"), null=True, blank=True, help_text=_("To the hour.")
    )
    revoked_at = UTCDateTimeField(_("revoked at"), null=True, blank=True)
    revoked_by = models.TextField(_("revoked by"), db_default="")

    class Meta:
        verbose_name = _("token")
        verbose_name_plural = _("tokens")
        required_db_vendor = "postgresql"
        default_permissions = ("view",)
        permissions = [("manage_token", "Can create and revoke tokens")]
        constraints = [
            models.UniqueConstraint(
                fields=["name"],
                condition=models.Q(revoked_at__isnull=True),
                name="jobqueue_tk_name",
            ),
            models.CheckConstraint(
                condition=is_readable("expires_at"), name="jobqueue_tk_expires_at"
            ),
        ]

    def __str__(self) -> str:
        return self.name
