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


class MomentsForm(forms.Form):
    """A form with moments: when a job runs, and when it expires."""

    def name_zones(self) -> None:
        """Say of each field in which time zone it is."""
        for one in self.fields.values():
            if isinstance(one, MomentField):
                one.name_zone()

    def clean(self) -> dict[str, Any]:
        """A job cannot expire before it would run."""
        said = super().clean() or {}
        expires_at = said.get("expires_at")
        starts = said.get("run_after") or timezone.now()
        if expires_at is not None and expires_at <= starts:
            self.add_error("expires_at", gettext("This is before the job would run."))
        return said
