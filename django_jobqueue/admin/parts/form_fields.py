"""Form fields that several forms share: a moment, a priority, a queue, a name."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from django import forms
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.policy import PRIORITIES
from django_jobqueue.text import timezones
from django_jobqueue.text.durations import duration_of

HOW_LONG: Final = _("For example 90 s, 2 m, 1 h 30 m, or 2 d; a number is seconds.")


class MomentField(forms.DateTimeField):
    """A moment in the time zone of the page, which it names; it may be left empty."""

    def __init__(self, **options: Any) -> None:
        widget = forms.DateTimeInput(
            attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"
        )
        super().__init__(required=False, widget=widget, **options)

    @property
    def help_text(self) -> str:
        """The help text, and the time zone, in the language of this request."""
        zone = gettext("Time zone: %(name)s.")
        zone %= {"name": timezone.get_current_timezone_name()}
        return f"{self._help_text} {zone}"

    @help_text.setter
    def help_text(self, text: Any) -> None:
        self._help_text = text

    def to_python(self, value: Any) -> datetime | None:
        """With its zone, which Django leaves out where ``USE_TZ`` is false."""
        moment = super().to_python(value)
        return None if moment is None else timezones.aware(moment)

    def prepare_value(self, value: Any) -> Any:
        """As the page shows it: Django leaves it in UTC where ``USE_TZ`` is false."""
        if isinstance(value, datetime):
            return timezones.local(value).replace(tzinfo=None)
        return value


class LengthField(forms.DurationField):
    """A time span, read as pages print it: "2 m", "1 h 30 m"."""

    def to_python(self, value: Any) -> timedelta | None:
        """Also as Python and PostgreSQL write it."""
        if isinstance(value, str):
            close = "".join(value.lower().split()).replace("min", "m")
            read = duration_of(close)
            if read is not None and read < timedelta.max:
                return read
        return super().to_python(value)

    def prepare_value(self, value: Any) -> Any:
        """As people write it, in all languages."""
        return _written(value) if isinstance(value, timedelta) else value


def _written(value: timedelta) -> str:
    """Nothing is lost: "1 d 2 h", "1 s 500 ms"; as Python has it, where that would."""
    if value < timedelta(0) or value.microseconds % 1_000:
        return str(value)
    parts = {
        "d": value.days,
        "h": value.seconds // 3_600,
        "m": value.seconds // 60 % 60,
        "s": value.seconds % 60,
        "ms": value.microseconds // 1_000,
    }
    return " ".join(f"{n} {unit}" for unit, n in parts.items() if n) or "0"


class MomentsForm(forms.Form):
    """A form with moments: when a job runs, and when it expires."""

    def clean(self) -> dict[str, Any]:
        """A job cannot expire before it would run."""
        cleaned_data = super().clean() or {}
        expires_at = cleaned_data.get("expires_at")
        starts = cleaned_data.get("run_after") or timezones.now()
        if expires_at is not None and expires_at <= starts:
            self.add_error("expires_at", gettext("This is before the job would run."))
        return cleaned_data


class PriorityField(forms.IntegerField):
    """A priority that jobs can have; it may be left empty."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            label=_("Priority"),
            required=False,
            min_value=PRIORITIES[0],
            max_value=PRIORITIES[-1],
            **options,
        )


class QueueField(forms.ChoiceField):
    """One of the queues in use; it may be left empty."""

    def __init__(self, **options: Any) -> None:
        super().__init__(label=_("Queue"), required=False, **options)

    def offer(self, names: Iterable[str], empty: Any) -> None:
        """Fill the choice; ``empty`` is what it means to choose none."""
        self.choices = [("", empty), *((name, name) for name in names)]


class NameInput(forms.TextInput):
    """A text with names to choose from, without a script."""

    template_name = "admin/jobqueue/name_input.html"

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        self._names = list(names)

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        """With the list of names."""
        known = {"list": f"{name}-names", **(attrs or {})}
        return {**super().get_context(name, value, known), "names": self._names}
