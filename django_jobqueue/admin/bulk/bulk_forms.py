"""Forms on the page of a draft, one for each kind of bulk operation."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, Protocol

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.base import may
from django_jobqueue.admin.parts import catalogue, display
from django_jobqueue.admin.parts.form_fields import (
    MomentField,
    PriorityField,
    QueueField,
)
from django_jobqueue.conf import GREATEST
from django_jobqueue.domain.states import BulkKind, ReplayExpiry, SkipReplayed
from django_jobqueue.store.bulk.draft_counts import Counted
from django_jobqueue.store.bulk.operation_rows import Operation, Options
from django_jobqueue.text import numbers

TYPED_ABOVE: Final = 1_000  # jobs, of which the number is to be typed
LONGEST_SPREAD: Final = 60 * 24 * 7  # minutes


class Planned(Protocol):
    """The part of a draft that the form reads."""

    operation: Operation

    @property
    def counted(self) -> Counted:
        """The counts of its jobs."""
        ...

    @property
    def plan(self) -> tuple[int, Counter[str]]:
        """How many jobs would be changed, and how many skipped."""
        ...

    def plan_of(self, options: Options) -> tuple[int, Counter[str]]:
        """The same with other choices."""
        ...


class BulkForm(forms.Form):
    """The fields that every kind has."""

    options: tuple[str, ...] = ()  # fields that become options of the operation

    per_minute = forms.IntegerField(
        label=_("Maximum per minute"),
        required=False,
        min_value=1,
        max_value=GREATEST,
        help_text=_("Empty: no limit."),
    )
    spread = forms.IntegerField(
        label=_("Or spread over (minutes)"),
        required=False,
        min_value=1,
        max_value=LONGEST_SPREAD,
    )
    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        required=False,
        help_text=_("Stored with the operation and in the audit log."),
        widget=forms.TextInput(attrs={"size": 60}),
    )
    shown = forms.IntegerField(required=False, widget=forms.HiddenInput)
    typed = forms.CharField(label=_("Number of jobs"), required=False)

    def __init__(
        self, *args: Any, request: HttpRequest, draft: Planned, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._draft = draft
        self.plan = draft.plan  # with what is chosen
        self.initial["shown"] = self.number
        self._ask_number()
        for field in self.fields.values():
            if isinstance(field, QueueField):
                names = catalogue.queue_names(request)
                field.offer(names, _("unchanged"))

    @property
    def number(self) -> int:
        """How many jobs would be changed."""
        return self.plan[0]

    @property
    def asks_number(self) -> bool:
        """True if the number of jobs has to be typed."""
        return self.number > TYPED_ABOVE

    def _ask_number(self) -> None:
        """Only a number that was counted can be typed."""
        field = self.fields["typed"]
        if self._draft.counted.over and self.asks_number:
            number = {"count": numbers.number(self.number)}
            field.help_text = gettext("Type %(count)s to confirm.") % number
            field.widget = forms.TextInput(
                attrs={"inputmode": "numeric", "autocomplete": "off"}
            )
        else:
            field.help_text = ""
            field.widget = forms.HiddenInput()
        # The field as the page shows it copies its help text when it is first used,
        # which checking it does.
        self["typed"].help_text = field.help_text

    def clean(self) -> dict[str, Any]:
        """The number is typed, and only one of two rates is given."""
        cleaned_data = super().clean() or {}
        if cleaned_data.get("per_minute") and cleaned_data.get("spread"):
            self.add_error("spread", _("Give a rate or a span, not both."))
        if not self.errors and self._draft.counted.over:
            self._check_number(cleaned_data)
        return cleaned_data

    def _check_number(self, cleaned_data: dict[str, Any]) -> None:
        """The operator confirms the number that the page showed. Another choice may
        change the number: then it is shown, and asked for again."""
        options = self._draft.operation.options._replace(**self._options(cleaned_data))
        self.plan = self._draft.plan_of(options)
        self._ask_number()
        if not self.number:
            raise ValidationError(_("With these choices no job would be changed."))
        if cleaned_data.get("shown") != self.number:
            data = self.data.copy()  # type: ignore[attr-defined]
            data["shown"] = str(self.number)
            self.data = data
            text = ngettext(
                "With these choices there is %(number)s job. Check, and confirm again.",
                "With these choices there are %(number)s jobs. Check, and confirm "
                "again.",
                self.number,
            )
            number = {"number": numbers.number(self.number)}
            self.add_error("typed" if self.asks_number else None, text % number)
            return
        digits = "".join(c for c in cleaned_data.get("typed") or "" if c.isdigit())
        if self.asks_number and digits != str(self.number):
            text = gettext("Type the number of jobs to confirm.")
            self.add_error("typed", text)

    def rate(self) -> int | None:
        """The maximum number of jobs per minute; None: no limit."""
        cleaned_data = self.cleaned_data
        rate: int | None = cleaned_data.get("per_minute")
        if cleaned_data.get("spread"):
            rate = max(1, -(-self.number // cleaned_data["spread"]))
        return rate

    def resumed(self) -> list[str]:
        """The paused job types that are to be resumed."""
        return []

    def chosen(self) -> dict[str, Any]:
        """The choices, as options of the operation."""
        return self._options(self.cleaned_data)

    def _options(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        options = {name: cleaned[name] for name in self.options}
        for name in ("expires", "skip_replayed"):  # without an answer as drafted
            if not options.get(name, True):
                del options[name]
        return {name: None if value == "" else value for name, value in options.items()}


def paused_types(request: HttpRequest, counted: Counted) -> list[str]:
    """The job types of these jobs that are paused."""
    types = catalogue.job_types(request, counted.job_types)
    return [name for name in sorted(types) if catalogue.is_paused(types[name])]


class ReplayAllForm(BulkForm):
    """How to replay, and what to leave out."""

    options = (
        "expires",
        "queue",
        "priority",
        "run_after",
        "skip_replayed",
        "skip_at_most_once",
    )
    expires = forms.ChoiceField(
        label=_("Expiry"),
        required=False,
        widget=forms.RadioSelect,
        choices=[
            (ReplayExpiry.SAME, _("the same lifetime, from when it is due")),
            (
                ReplayExpiry.KEEP,
                _("the same time as before: an expired job expires again"),
            ),
            (ReplayExpiry.NEVER, _("never")),
        ],
    )
    skip_replayed = forms.ChoiceField(
        label=_("Replayed already"),
        required=False,
        choices=[
            (SkipReplayed.ANY, _("skip them")),
            (SkipReplayed.SUCCEEDED, _("leave out jobs whose replay succeeded")),
            (SkipReplayed.NONE, _("replay them again")),
        ],
    )
    skip_at_most_once = forms.BooleanField(
        label=_("Skip jobs of at-most-once types"), required=False
    )
    run_after = MomentField(label=_("Run after"), help_text=_("Empty: now."))
    priority = PriorityField(
        help_text=_("-100 to 100; higher runs first. Empty: unchanged.")
    )
    queue = QueueField()
    resume = forms.BooleanField(required=False)
    field_order = ("resume", *options, "per_minute", "spread", "reason", "typed")

    def __init__(self, *args: Any, request: HttpRequest, draft: Planned, **kw: Any):
        super().__init__(*args, request=request, draft=draft, **kw)
        self._paused = paused_types(request, draft.counted)
        if self._paused and may(request, "pause_jobtype"):
            names = {"names": display.names(self._paused)}
            self.fields["resume"].label = gettext("Resume %(names)s") % names
        else:
            del self.fields["resume"]

    def resumed(self) -> list[str]:
        """The paused job types that are to be resumed."""
        return self._paused if self.cleaned_data.get("resume") else []


class RescheduleAllForm(BulkForm):
    """When, how urgently and where; what is left empty stays as it is."""

    options = ("run_after", "priority", "queue")
    run_after = MomentField(label=_("Run after"), help_text=_("Empty: unchanged."))
    priority = PriorityField(
        help_text=_("-100 to 100; higher runs first. Empty: unchanged.")
    )
    queue = QueueField()
    field_order = (*options, "per_minute", "spread", "reason", "typed")

    def clean(self) -> dict[str, Any]:
        """Something must be chosen."""
        cleaned_data = super().clean()
        if not self.errors and not Options(**self._given(cleaned_data)).moves:
            raise ValidationError(_("Choose a time, a priority or a queue."))
        return cleaned_data

    def _given(self, cleaned_data: dict[str, Any]) -> dict[str, Any]:
        return {
            name: cleaned_data.get(name) or None for name in ("run_after", "queue")
        } | {"priority": cleaned_data.get("priority")}


class PruneAllForm(BulkForm):
    """Nothing brings them back, so the number is always typed."""

    @property
    def asks_number(self) -> bool:
        """Always."""
        return True


FORMS: Final[dict[str, type[BulkForm]]] = {
    BulkKind.REPLAY: ReplayAllForm,
    BulkKind.CANCEL: BulkForm,
    BulkKind.RUN_NOW: BulkForm,
    BulkKind.RESCHEDULE: RescheduleAllForm,
    BulkKind.PRUNE: PruneAllForm,
}
