"""The names of those whose remote workers there are."""

from __future__ import annotations

from django.contrib.auth import get_user_model

from django_jobqueue.contrib.http.models import Token


def token_name(identity: str) -> str:
    """That of the token with this id; empty if there is none."""
    names = Token._default_manager.filter(pk=identity).values_list("name", flat=True)
    return names.first() or ""


def user_name(identity: str) -> str:
    """That of the user with this id; empty if there is none."""
    user = get_user_model()._default_manager.filter(pk=identity).first()
    return "" if user is None else str(user.get_username())
