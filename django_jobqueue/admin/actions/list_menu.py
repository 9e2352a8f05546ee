"""The menu of a list: its entries, and the keys of the rows that were selected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.query import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext

from django_jobqueue.admin.actions.action import Action
from django_jobqueue.text import numbers

if TYPE_CHECKING:
    from django_jobqueue.admin.actions.action_admin import ActionAdmin


def keys_of(model: type[models.Model], texts: Sequence[str]) -> list[Any] | None:
    """These texts as keys of the model; None if one of them is not a key."""
    keys = []
    for text in texts:
        if "\x00" in text:
            return None
        try:
            keys.append(model._meta.pk.to_python(text.strip("\r")))
        except ValidationError:
            return None
    return keys


def too_many(most: int) -> str:
    """The message to whoever selected more than may be selected at once."""
    text = gettext(
        "At most %(most)s can be selected at once. Nothing was changed: narrow the "
        "filters, or select on the page."
    )
    return text % {"most": numbers.number(most)}


def menu_name(action: Action) -> str:
    """The name of its entry."""
    return action.name.replace("-", "_")


def menu_entry(action: Action) -> Callable[..., HttpResponse | None]:
    """The action as Django's list calls it; ``get_actions`` checks the rights."""

    @admin.action(description=action.menu_label)
    def entry(
        model_admin: ActionAdmin, request: HttpRequest, queryset: QuerySet[Any]
    ) -> HttpResponse | None:
        return model_admin.select(request, action, queryset)

    entry.__name__ = menu_name(action)
    return entry
