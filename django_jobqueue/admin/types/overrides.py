"""Overrides of job types: the form, how they are cleared, and who changed each when."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.contrib.admin.models import CHANGE, LogEntry
from django.http import HttpRequest
from django.utils.text import format_lazy
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import (
    ActionForm,
    ConfirmedAction,
    Done,
    Question,
    Rows,
)
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.parts.form_fields import HOW_LONG, LengthField
from django_jobqueue.admin.parts.history_entries import entries
from django_jobqueue.admin.parts.policies import (
    field_of,
    label_of,
    overridden,
    override_text,
)
from django_jobqueue.domain.job_options import OVERRIDES, Override
from django_jobqueue.models import JobType
from django_jobqueue.store.job_types import Change
from django_jobqueue.text import numbers

if TYPE_CHECKING:
    ModelForm = forms.ModelForm[JobType]
else:
    ModelForm = forms.ModelForm

ENTRIES: Final = 50  # of the history, looked through for who overrode what


class OverridesForm(ModelForm):
    """A field for each override; an empty one lets the code decide."""

    overridden: Mapping[str, Change]  # the changes that saving it made

    class Meta:
        model = JobType
        fields = tuple(map(field_of, OVERRIDES))
        field_classes: ClassVar[dict[str, type[forms.Field]]] = {
            field_of(option): LengthField
            for option, override in OVERRIDES.items()
            if override.is_duration
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.overridden = {}
        for option, override in OVERRIDES.items():
            field = self.fields.get(field_of(option))
            if field is not None and override.is_duration:
                field.help_text = format_lazy("{} {}", HOW_LONG, field.help_text)

    def clean(self) -> dict[str, Any]:
        """Refuse the values that ``operations.override`` refuses."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        for option, override in OVERRIDES.items():
            if problem := override.problem(values.get(field_of(option))):
                text = problem if override.is_text else range_text(override)
                self.add_error(field_of(option), text)
        return values

    def override(self, by: str) -> None:
        """Write the overrides that were changed here, and no others."""
        given: Any = {
            option: self.cleaned_data[field_of(option)]
            for option in OVERRIDES
            if field_of(option) in self.changed_data
        }
        if given:
            self.overridden = operations.override(self.instance.pk, by=by, **given)


def range_text(override: Override) -> Any:
    """The values that an override may have, as a sentence."""
    if isinstance(override.most, timedelta):
        return format_lazy(_("From zero to {days} days."), days=override.most.days)
    text = _("From {least} to {most}.")
    if override.unlimited is not None:
        text = _("From {least} to {most}, or {unlimited} for unlimited.")
    return format_lazy(
        text, least=override.least, most=override.most, unlimited=override.unlimited
    )


class ClearForm(ActionForm):
    """The overrides to clear."""

    override = forms.MultipleChoiceField(
        label=_("Overrides"), widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        in_force = {option for row in self.rows for option in overridden(row)}
        offered = [option for option in OVERRIDES if option in in_force]
        self.fields["override"].choices = [(o, label_of(o)) for o in offered]  # type: ignore[attr-defined]
        self.initial["override"] = self.request.GET.getlist("override") or offered


class ClearOverrides(ConfirmedAction):
    """Let the code decide again."""

    name = "clear"
    menu_label = _("Clear overrides of selected %(verbose_name_plural)s")
    label = _("Clear overrides")
    rights = ("change_jobtype",)
    replaces = OverridesForm.Meta.fields
    form_class: ClassVar[type[ActionForm]] = ClearForm

    def applies_to(self, row: Any) -> bool:
        """Only to job types that have overrides."""
        return bool(overridden(row))

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """Name the job types."""
        text = ngettext(
            "Clear overrides of %(names)s?",
            "Clear overrides of these %(count)s: %(names)s?",
            len(rows),
        )
        named = {
            "count": numbers.number(len(rows)),
            "names": display.names(row.pk for row in rows),
        }
        return Question(text % named, [gettext("The code decides again.")])

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Clear them; each job type's history keeps their values."""
        by = request.user.get_username()
        cleared = 0
        for row in rows:
            none: Any = dict.fromkeys(cleaned["override"])
            changed = operations.override(row.pk, by=by, **none)
            cleared += len(changed)
            if changed:
                write_down(request, row, changed)
        text = ngettext(
            "%(count)s override was cleared.",
            "%(count)s overrides were cleared.",
            cleared,
        )
        return Done(text % {"count": numbers.number(cleared)})


def write_down(
    request: HttpRequest, job_type: JobType, changed: Mapping[str, Change]
) -> None:
    """Write the changes to the job type's history."""
    user: Any = request.user
    LogEntry.objects.log_actions(user.pk, [job_type], CHANGE, entry_of(changed))


def entry_of(changed: Mapping[str, Change]) -> str:
    """The message of an entry in the history: each value before and after.

    It has the form of Django's own messages, with the names of the options added.
    """
    fields = [
        gettext("%(what)s: %(before)s → %(after)s")
        % {
            "what": label_of(option),
            "before": override_text(option, change.before),
            "after": override_text(option, change.after),
        }
        for option, change in changed.items()
    ]
    return json.dumps([{"changed": {"fields": fields}, "overrides": list(changed)}])


def last_changes(job_type: JobType) -> dict[str, LogEntry]:
    """The last change of each override in the admin: who made it, and when."""
    last: dict[str, LogEntry] = {}
    for entry in entries(JobType, job_type.pk, ENTRIES):
        for option in _options_in(entry.change_message):
            last.setdefault(option, entry)
    return last


def _options_in(text: str) -> Iterable[str]:
    try:
        parts = json.loads(text)
    except ValueError:
        return []
    if not isinstance(parts, list):
        return []
    return [
        option
        for part in parts
        if isinstance(part, dict)
        for option in part.get("overrides", ())
    ]
