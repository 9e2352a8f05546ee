"""Edit a schedule, make one, and preview when it would fire."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.actions.row_marks import changed_meanwhile, marks_for
from django_jobqueue.admin.base import may
from django_jobqueue.admin.jobs import data_changes
from django_jobqueue.admin.lists.filters import ChoiceFilter
from django_jobqueue.admin.parts import catalogue, display
from django_jobqueue.conf import conf
from django_jobqueue.contrib.schedules import operations
from django_jobqueue.contrib.schedules.admin.schedule_forms import (
    EDITED,
    OVERRIDDEN,
    NewScheduleForm,
    OverrideForm,
    RuleForm,
    ScheduleForm,
    typed_moments,
)
from django_jobqueue.contrib.schedules.due_firings import Origin
from django_jobqueue.contrib.schedules.models import Schedule
from django_jobqueue.domain.registry import BULK
from django_jobqueue.exceptions import JobQueueError
from django_jobqueue.models import JobType

PREVIEW: Final = "preview"  # the button that only shows the next moments


class PreviewMoments(Action):
    name = PREVIEW
    is_for_selection = True
    is_button = False

    def is_allowed(self, request: HttpRequest, row: Any = None) -> bool:
        rights = ("add_schedule", "change_schedule")
        return any(may(request, f"jobqueue_schedules.{right}") for right in rights)

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: Any
    ) -> HttpResponse:
        named = request.GET.get("schedule", "").replace("\x00", "")
        held = Schedule.objects.filter(pk=named).first() if named else None
        moments = typed_moments(request.GET, held)
        return page.show(
            request,
            "admin/jobqueue_schedules/preview.html",
            title=gettext("Next moments"),
            above=display.visible(named) or gettext("New schedule"),
            above_url=page.list_url,
            moments=moments,
        )


PREVIEW_MOMENTS: Final = PreviewMoments()


class EditSchedule(Action):
    name = "edit"
    label = _("Edit")
    rights = ("jobqueue_schedules.change_schedule",)

    def replaced(self, request: HttpRequest, row: Schedule) -> Sequence[Any]:
        names = OVERRIDDEN if row.origin == Origin.CODE else EDITED
        return [getattr(row, name) for name in names]

    def label_for(self, row: Any) -> Any:
        """“Override” for a schedule that the code declares."""
        return _("Override") if row.origin == Origin.CODE else self.label

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: Schedule
    ) -> HttpResponse:
        form = _form_of(request, row)
        if form.is_bound and PREVIEW not in request.POST and form.is_valid():
            with transaction.atomic(using=conf.database):
                values = partial(self.replaced, request)
                if not page.held(request, [row], values):
                    messages.error(request, changed_meanwhile())
                    return HttpResponseRedirect(request.get_full_path())
                if not form.changed_data:
                    return page.back_to(request, row, gettext("Nothing was changed."))
                if _save(request, row, form):
                    text = gettext("The schedule was saved.")
                    return page.back_to(request, row, text)
        return _show(page, request, form, row)


EDIT: Final = EditSchedule()


class NewSchedule(Action):
    name = "new"
    label = _("New schedule")
    rights = ("jobqueue_schedules.add_schedule",)
    is_for_selection = True
    is_button = False

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: Any
    ) -> HttpResponse:
        named = request.GET.get("job_type", "")
        # The jobs of bulk operations need their rows.
        job_type = catalogue.job_type(request, named) if named != BULK else None
        if job_type is None:
            if named:
                text = gettext("There is no job type %(name)s.")
                messages.warning(request, text % {"name": display.visible(named)})
            return _show(page, request, None, **_choices(request))
        data = request.POST if request.method == "POST" else None
        form = NewScheduleForm(data, request=request, job_type=job_type)
        if form.is_bound and PREVIEW not in request.POST and form.is_valid():
            made = _create(request, job_type, form)
            if made is not None:
                return page.back_to(request, made, gettext("The schedule was made."))
        return _show(page, request, form, job_type=job_type)


def _choices(request: HttpRequest) -> dict[str, Any]:
    """The job types to choose from, or where to ask for them if they are many."""
    names = [name for name in catalogue.type_names(request) if name != BULK]
    if len(names) > ChoiceFilter.most_options:
        return {"names_url": reverse("admin:jobqueue_jobtype_names")}
    return {"job_types": [(name, display.visible(name)) for name in names]}


def _form_of(request: HttpRequest, row: Schedule) -> OverrideForm | ScheduleForm:
    data = request.POST if request.method == "POST" else None
    if row.origin == Origin.CODE:
        return OverrideForm(data, request=request, row=row)
    job_type = catalogue.job_types(request, [row.job_type_id])[row.job_type_id]
    return ScheduleForm(data, request=request, job_type=job_type, row=row)


def _show(
    page: ActionAdmin,
    request: HttpRequest,
    form: RuleForm | None,
    row: Schedule | None = None,
    job_type: JobType | None = None,
    **context: Any,
) -> HttpResponse:
    moments = None
    if form is not None:
        held = row if row is not None and row.origin == Origin.CODE else None
        moments = typed_moments(form.data if form.is_bound else form.initial, held)
        context |= {"form": form, "media": page.media + form.media}
    title = gettext("New schedule")
    if row is not None:
        title = str(EDIT.label_for(row))
    return page.show(
        request,
        "admin/jobqueue_schedules/schedule_form.html",
        title=title,
        row=row,
        job_type=job_type,
        type_name=display.visible(job_type.name) if job_type else "",
        above=display.visible(row.pk) if row else "",
        above_url=page.url_of(row) if row else page.list_url,
        moments=moments,
        marks=marks_for(form, [row], partial(EDIT.replaced, request)) if row else "",
        preview=page.address_of(PREVIEW_MOMENTS),
        **context,
    )


def _save(
    request: HttpRequest, row: Schedule, form: OverrideForm | ScheduleForm
) -> bool:
    """Save what was changed, and log it; False if it was refused, which the form
    shows."""
    user: Any = request.user
    by = user.get_username()
    before = {name: form.initial.get(name) for name in form.changed_data}
    try:
        with transaction.atomic(using=conf.database):
            if isinstance(form, OverrideForm):
                operations.override(row.pk, by=by, **form.chosen())
            else:
                operations.edit(row.pk, by=by, **form.values(changed=True))
            entry = _entry(form, before)
            LogEntry.objects.log_actions(user.pk, [row], CHANGE, entry)
            return True
    except JobQueueError as error:
        _refuse(form, error)
        return False


def _create(
    request: HttpRequest, job_type: JobType, form: NewScheduleForm
) -> Schedule | None:
    user: Any = request.user
    name = form.cleaned_data["name"]
    values = form.values(changed=False)
    try:
        with transaction.atomic(using=conf.database):
            by = user.get_username()
            operations.create(name, job_type.name, by=by, **values)
            row = Schedule(name=name)
            entry = gettext("Made by hand.")
            LogEntry.objects.log_actions(user.pk, [row], ADDITION, entry)
            return row
    except JobQueueError as error:
        _refuse(form, error)
        return None


def _refuse(form: RuleForm, error: JobQueueError) -> None:
    field, _colon, _problem = str(error).partition(" ")
    form.add_error(field if field in form.fields else None, str(error))


def _entry(form: RuleForm, before: dict[str, Any]) -> str:
    """The changes as the history tells them, in the form of Django's own messages: the
    rule and the zone before and after, of the data only keys."""
    fields = []
    for name in form.changed_data:
        label = str(form.fields[name].label)
        if name in ("rule", "time_zone"):
            change = gettext("%(what)s: %(before)s → %(after)s") % {
                "what": label,
                "before": before[name] or display.NOTHING,
                "after": form.cleaned_data[name] or display.NOTHING,
            }
            fields.append(change)
        elif name == "new_data" and form.changes:
            fields.append(data_changes.entry(form.changes).rstrip("."))
        elif name != "new_data" or isinstance(form, OverrideForm):
            fields.append(label)
    return json.dumps([{"changed": {"fields": fields}}])
