"""Decisions about failure groups: resolve, ignore, reopen, assign, note."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import (
    ActionForm,
    ConfirmedAction,
    Done,
    Question,
    Rows,
    left_out,
)
from django_jobqueue.admin.failures import failure_states
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.parts.form_fields import MomentField, NameInput
from django_jobqueue.domain.policy import WHO_LENGTH
from django_jobqueue.operations.failure_groups import NOTE_LENGTH, RELEASE_LENGTH
from django_jobqueue.text import numbers, timezones

DECIDE: Final = "change_failuregroup"
MOST_NAMES: Final = 200  # of staff, to choose from
DECISION: Final = ("state", "resolved_in", "ignored_until")


class SeenForm(ActionForm):
    """Remembers when the page was made: later regressions were not seen."""

    seen = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["seen"].initial = timezones.now().isoformat()

    def clean_seen(self) -> datetime | None:
        """The moment; None for a POST without the page."""
        text = self.cleaned_data["seen"]
        try:
            moment = parse_datetime(text) if text else None
        except ValueError:
            moment = None
        if text and (moment is None or timezone.is_naive(moment)):
            raise ValidationError(gettext("This is not a valid time."))
        return moment


class ResolveForm(SeenForm):
    """In which release."""

    in_release = forms.CharField(
        label=_("Fixed in release"),
        max_length=RELEASE_LENGTH,
        required=False,
        help_text=_(
            "Empty: the next failure reopens it. With a release: failures of the other "
            "releases that workers run now do not."
        ),
    )


class IgnoreForm(SeenForm):
    """For how long."""

    until = MomentField(label=_("Until"), help_text=_("Empty: forever."))

    def clean_until(self) -> datetime | None:
        """A moment to come."""
        until: datetime | None = self.cleaned_data["until"]
        if until is not None and until <= timezones.now():
            raise ValidationError(gettext("This moment is in the past."))
        return until


class AssignForm(ActionForm):
    """To whom."""

    assignee = forms.CharField(
        label=_("Assignee"),
        max_length=WHO_LENGTH,
        required=False,
        help_text=_("A user's name, or any other. Empty: nobody."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["assignee"]
        field.initial = self.request.user.get_username()
        field.widget = NameInput(_staff())


class NoteForm(ActionForm):
    """The text of the note."""

    text = forms.CharField(
        label=_("Note"),
        max_length=NOTE_LENGTH,
        widget=forms.Textarea(attrs={"rows": 4, "cols": 60}),
    )


class GroupAction(ConfirmedAction):
    """A decision; it can be taken back, and touches no job."""

    rights = (DECIDE,)

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """How many groups."""
        return Question(_counted(self.question(len(rows)), len(rows)))

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Decide, and say how many it changed."""
        by = request.user.get_username()
        changed = set(self.decide([row.pk for row in rows], by, cleaned))
        text = _counted(self.answer(len(changed)), len(changed))
        return Done(
            text if changed else "",
            left_out(len(rows), len(changed)),
            [row for row in rows if row.pk in changed],
            self.entry(cleaned),
        )

    def question(self, count: int) -> str:
        """The question about this many groups."""
        raise NotImplementedError

    def answer(self, count: int) -> str:
        """The message about this many changed groups."""
        raise NotImplementedError

    def entry(self, cleaned: dict[str, Any]) -> str:
        """For the history of each."""
        raise NotImplementedError

    def decide(self, keys: list[UUID], by: str, cleaned: dict[str, Any]) -> list[UUID]:
        """Do it; returns the keys of the changed groups."""
        raise NotImplementedError


class ResolveGroups(GroupAction):
    """It is fixed; the next failure is a regression."""

    name = "resolve"
    menu_label = _("Resolve selected %(verbose_name_plural)s")
    label = _("Resolve")
    replaces = DECISION
    form_class = ResolveForm

    def applies_to(self, row: Any) -> bool:
        """Only to a group that is not resolved."""
        return failure_states.state_now(row) != "resolved"

    def question(self, count: int) -> str:
        """Confirm the resolving."""
        return ngettext(
            "Resolve %(count)s failure group?",
            "Resolve %(count)s failure groups?",
            count,
        )

    def answer(self, count: int) -> str:
        """That they are resolved."""
        return ngettext(
            "%(count)s failure group was resolved.",
            "%(count)s failure groups were resolved.",
            count,
        )

    def entry(self, cleaned: dict[str, Any]) -> str:
        """With the release."""
        if not cleaned["in_release"]:
            return gettext("Resolved.")
        shown = {"release": display.visible(cleaned["in_release"])}
        return gettext("Resolved in release %(release)s.") % shown

    def decide(self, keys: list[UUID], by: str, cleaned: dict[str, Any]) -> list[UUID]:
        """Resolve the groups that did not regress unseen."""
        return operations.resolve(
            keys, in_release=cleaned["in_release"], seen=cleaned["seen"], by=by
        )


class IgnoreGroups(GroupAction):
    """It is known, and nobody is to be told."""

    name = "ignore"
    menu_label = _("Ignore selected %(verbose_name_plural)s")
    label = _("Ignore")
    replaces = DECISION
    form_class = IgnoreForm

    def applies_to(self, row: Any) -> bool:
        """Only to a group that is not ignored."""
        return failure_states.state_now(row) != "ignored"

    def question(self, count: int) -> str:
        """Confirm the ignoring."""
        return ngettext(
            "Ignore %(count)s failure group?", "Ignore %(count)s failure groups?", count
        )

    def answer(self, count: int) -> str:
        """That they are ignored."""
        return ngettext(
            "%(count)s failure group was ignored.",
            "%(count)s failure groups were ignored.",
            count,
        )

    def entry(self, cleaned: dict[str, Any]) -> str:
        """With the moment."""
        if cleaned["until"] is None:
            return gettext("Ignored.")
        return gettext("Ignored until %(moment)s.") % {
            "moment": display.exact(cleaned["until"])
        }

    def decide(self, keys: list[UUID], by: str, cleaned: dict[str, Any]) -> list[UUID]:
        """Ignore the groups that did not regress unseen."""
        return operations.ignore(
            keys, until=cleaned["until"], seen=cleaned["seen"], by=by
        )


class ReopenGroups(GroupAction):
    """It was resolved or ignored, and is not any more."""

    name = "reopen"
    menu_label = _("Reopen selected %(verbose_name_plural)s")
    label = _("Reopen")
    replaces = DECISION

    def applies_to(self, row: Any) -> bool:
        """Only to a group that is not open."""
        return failure_states.state_now(row) in ("resolved", "ignored")

    def question(self, count: int) -> str:
        """Confirm the reopening."""
        return ngettext(
            "Reopen %(count)s failure group?", "Reopen %(count)s failure groups?", count
        )

    def answer(self, count: int) -> str:
        """That they are open."""
        return ngettext(
            "%(count)s failure group is open again.",
            "%(count)s failure groups are open again.",
            count,
        )

    def entry(self, cleaned: dict[str, Any]) -> str:
        """That it is open."""
        return gettext("Reopened.")

    def decide(self, keys: list[UUID], by: str, cleaned: dict[str, Any]) -> list[UUID]:
        """Reopen."""
        return operations.reopen(keys, by=by)


class AssignGroups(GroupAction):
    """Somebody looks after it."""

    name = "assign"
    menu_label = _("Assign selected %(verbose_name_plural)s")
    label = _("Assign")
    replaces = ("assignee",)
    form_class = AssignForm

    def question(self, count: int) -> str:
        """To whom."""
        return ngettext(
            "Who is responsible for %(count)s failure group?",
            "Who is responsible for %(count)s failure groups?",
            count,
        )

    def answer(self, count: int) -> str:
        """That they are somebody's."""
        return ngettext(
            "%(count)s failure group was assigned.",
            "%(count)s failure groups were assigned.",
            count,
        )

    def entry(self, cleaned: dict[str, Any]) -> str:
        """With the name."""
        if not cleaned["assignee"]:
            return gettext("Assigned to nobody.")
        shown = {"name": display.visible(cleaned["assignee"])}
        return gettext("Assigned to %(name)s.") % shown

    def decide(self, keys: list[UUID], by: str, cleaned: dict[str, Any]) -> list[UUID]:
        """Assign."""
        return operations.assign(keys, cleaned["assignee"], by=by)


class NoteGroups(GroupAction):
    """Something to remember."""

    name = "note"
    menu_label = _("Add a note to selected %(verbose_name_plural)s")
    label = _("Add a note")
    form_class = NoteForm

    def question(self, count: int) -> str:
        """The question."""
        return ngettext(
            "Add a note to %(count)s failure group?",
            "Add a note to %(count)s failure groups?",
            count,
        )

    def answer(self, count: int) -> str:
        """That it is noted."""
        return ngettext(
            "The note was added to %(count)s failure group.",
            "The note was added to %(count)s failure groups.",
            count,
        )

    def entry(self, cleaned: dict[str, Any]) -> str:
        """That there is one."""
        return gettext("Added a note.")

    def decide(self, keys: list[UUID], by: str, cleaned: dict[str, Any]) -> list[UUID]:
        """Note it."""
        return operations.note(keys, cleaned["text"], by=by)


def _counted(text: str, count: int) -> str:
    return text % {"count": numbers.number(count)}


def _staff() -> list[str]:
    """Names of users who may log in here."""
    model: Any = get_user_model()
    users = model._default_manager.filter(is_staff=True, is_active=True)
    name = model.USERNAME_FIELD
    return list(users.order_by(name).values_list(name, flat=True)[:MOST_NAMES])
