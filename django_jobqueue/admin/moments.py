"""A moment that an operator chooses, in the browser's own widget."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext


class MomentField(forms.DateTimeField):
    """A moment in the time zone of the page, which it names; it may be left empty."""

    def __init__(self, **options: Any) -> None:
        widget = forms.DateTimeInput(
            attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"
        )
        super().__init__(required=False, widget=widget, **options)

    def name_zone(self) -> None:
        """Say in which time zone it is, in the language of this request."""
        zone = gettext("Time zone: %(name)s.")
        zone %= {"name": timezone.get_current_timezone_name()}
        self.help_text = f"{self.help_text} {zone}"
