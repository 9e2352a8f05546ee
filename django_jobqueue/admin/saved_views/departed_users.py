"""The views that a user alone sees go with the user, so that whoever has the same name
later does not find them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import connections, transaction
from django.db.models.signals import post_delete
from django.dispatch import receiver

from django_jobqueue.conf import conf
from django_jobqueue.operations import saved_views


@receiver(post_delete, sender=settings.AUTH_USER_MODEL)
def forget_views(
    sender: type[Any], instance: Any, using: str, **kwargs: object
) -> None:
    """Once the user is gone for good. Whatever goes wrong is logged: it must not keep
    anybody from deleting users."""
    if connections[conf.database].vendor != "postgresql":  # MODE does without tables
        return

    def forget() -> None:  # Django logs its name
        saved_views.forget(name)

    name = instance.get_username()
    transaction.on_commit(forget, using=using, robust=True)
