"""What operators say instead of the code: the form, how it is taken back, and who said
it when."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
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
from django_jobqueue.admin.parts.entries import entries
from django_jobqueue.admin.parts.policies import (
    OPTIONS,
    field_of,
    label_of,
    overridden,
    override_text,
)
from django_jobqueue.conf import GREATEST
from django_jobqueue.domain.policy import LONGEST
from django_jobqueue.models import JobType
from django_jobqueue.operations.overrides import override_problem
from django_jobqueue.store.job_types import Change
from django_jobqueue.text import numbers

if TYPE_CHECKING:
    ModelForm = forms.ModelForm[JobType]
else:
    ModelForm = forms.ModelForm

ENTRIES: Final = 50  # of the history, looked through for who overrode what
HOW_LONG: Final = _(
    "Seconds, or hours:minutes:seconds, or days and hours:minutes:seconds."
)
SPAN: Final = format_lazy(_("From zero to {days} days."), days=LONGEST.days)
REFUSED: Final = {
    "priority": _("From -100 to 100; greater is sooner."),
    "max_attempts": format_lazy(
        _("From 1 to {most}, or -1 for without end."), most=GREATEST
    ),
    "timeout": SPAN,
    "concurrency": format_lazy(
        _("From 0 to {most}, or -1 for no limit."), most=GREATEST
    ),
    "keep_succeeded": SPAN,
    "keep_unsuccessful": SPAN,
}


class OverridesForm(ModelForm):
    """A field for each; an empty one leaves the choice to the code."""

    overridden: Mapping[str, Change]  # what saving it changed

    class Meta:
        model = JobType
        fields = tuple(map(field_of, OPTIONS))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.overridden = {}
        for option, refused in REFUSED.items():
            field = self.fields.get(field_of(option))
            if field is not None and refused is SPAN:
                field.help_text = format_lazy("{} {}", HOW_LONG, field.help_text)

    def clean(self) -> dict[str, Any]:
        """Refuse what the verb would."""
        said: dict[str, Any] = super().clean() or self.cleaned_data
        for option, refused in REFUSED.items():
            if override_problem(option, said.get(field_of(option))):
                self.add_error(field_of(option), refused)
        return said

    def override(self, by: str) -> None:
        """Say what was changed here, and nothing else."""
        said = {
            option: self.cleaned_data[field_of(option)]
            for option in OPTIONS
            if field_of(option) in self.changed_data
        }
        if said:
            self.overridden = operations.override(self.instance.pk, **said, by=by)


class ClearForm(ActionForm):
    """Which overrides."""

    override = forms.MultipleChoiceField(
        label=_("Overrides"), widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        found = {option for row in self.rows for option in overridden(row)}
        said = [option for option in OPTIONS if option in found]
        self.fields["override"].choices = [(o, label_of(o)) for o in said]  # type: ignore[attr-defined]
        self.initial["override"] = self.request.GET.getlist("override") or said


class ClearOverrides(ConfirmedAction):
    """Let the code decide again."""

    name = "clear"
    menu_label = _("Clear overrides of selected %(verbose_name_plural)s")
    label = _("Clear overrides")
    rights = ("change_jobtype",)
    form_class: ClassVar[type[ActionForm]] = ClearForm

    def applies_to(self, row: Any) -> bool:
        """Only what has overrides."""
        return bool(overridden(row))

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """Which, and what follows."""
        text = ngettext(
            "Clear overrides of %(names)s?",
            "Clear overrides of these %(count)s: %(names)s?",
            len(rows),
        )
        named = {
            "count": numbers.number(len(rows)),
            "names": display.names(row.pk for row in rows),
        }
        return Question(text % named, [gettext("What the code says holds again.")])

    def do(self, request: HttpRequest, rows: Rows, said: dict[str, Any]) -> Done:
        """Clear them; each job type's history says what they were."""
        by = request.user.get_username()
        cleared = 0
        for row in rows:
            none = dict.fromkeys(said["override"])
            changed = operations.override(row.pk, **none, by=by)
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
    """In the job type's history."""
    user: Any = request.user
    LogEntry.objects.log_actions(user.pk, [job_type], CHANGE, entry_of(changed))


def entry_of(changed: Mapping[str, Change]) -> str:
    """What the history says: what each override was, and what it is now.

    It is in the form of Django's own entries, which has room for the options' names.
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


def last_said(job_type: JobType) -> dict[str, LogEntry]:
    """Who changed each override last, and when, as far as the admin knows."""
    found: dict[str, LogEntry] = {}
    for entry in entries(JobType, job_type.pk, ENTRIES):
        for option in _options_in(entry.change_message):
            found.setdefault(option, entry)
    return found


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
