"""The forms of schedules: what operators say instead of the code, and all of a schedule
that they make."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final
from zoneinfo import available_timezones

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.base import VIEW_DATA, may
from django_jobqueue.admin.jobs.argument_fields import MISSING, arguments_of
from django_jobqueue.admin.jobs.data_changes import Change, LockedData, changes, plain
from django_jobqueue.admin.parts import catalogue, display
from django_jobqueue.admin.parts.form_fields import (
    HOW_LONG,
    LengthField,
    MomentField,
    NameInput,
    PriorityField,
    QueueField,
)
from django_jobqueue.admin.parts.json_text import parsed
from django_jobqueue.contrib.schedules.admin.schedule_cells import Moments, moments_of
from django_jobqueue.contrib.schedules.admin.schedule_page import (
    rule_in_words,
    sensitive_of,
)
from django_jobqueue.contrib.schedules.models import Schedule
from django_jobqueue.contrib.schedules.schedule_states import period_of, typed_text
from django_jobqueue.domain.policy import NAME_LENGTH
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.schedule_rules import (
    default_time_zone,
    known_time_zone,
    parse,
)
from django_jobqueue.domain.schedules import Missed, MissedPolicy, Overlap, Period
from django_jobqueue.enqueueing.scheduling import MOST_MISSED
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.models import JobType
from django_jobqueue.operations.checks import checked_data

LONGEST_RULE: Final = 200
EXAMPLES: Final = _("For example every 5 minutes, 30 2 * * *, or @daily.")
DEFAULT: Final = MissedPolicy()


class RuleForm(forms.Form):
    rule = forms.CharField(
        label=_("Rule"),
        max_length=LONGEST_RULE,
        help_text=EXAMPLES,
        widget=forms.TextInput(attrs={"size": 30, "spellcheck": "false"}),
    )
    time_zone = forms.CharField(label=_("Time zone"), max_length=64)
    new_data = forms.CharField(
        label=_("Data"),
        help_text=_("A JSON object: a key for each argument."),
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false"}),
    )

    def __init__(
        self,
        *args: Any,
        request: HttpRequest,
        job_type: str,
        sensitive: list[str],
        value: Any,
        **kwargs: Any,
    ) -> None:
        """``value`` are the data that are locked where they are secret."""
        super().__init__(*args, **kwargs)
        self.job_type = job_type
        self.locked = LockedData(parsed(json.dumps(value)), sensitive)
        self.changes: list[Change] = []  # of the data
        self.fields["time_zone"].widget = NameInput(sorted(available_timezones()))

    def clean_time_zone(self) -> str:
        return _checked(known_time_zone, self.cleaned_data["time_zone"])

    def clean_new_data(self) -> dict[str, Any] | None:
        text = self.cleaned_data["new_data"]
        if not text.strip():
            return None
        value = self.locked.read(text)
        if not isinstance(value, dict):
            raise ValidationError(_("The data of a job is an object: {…}."))
        data: dict[str, Any] = plain(value)
        try:
            checked_data(self.job_type, data)
        except InvalidArguments as error:
            raise ValidationError(str(error)) from error
        self.changes = changes(self.locked, value)
        return data

    def clean_rule(self) -> str:
        zone = default_time_zone()  # the field of the zone has errors of its own
        text: str = self.cleaned_data["rule"]
        if text:
            _checked(lambda rule: parse(rule, zone), text)
        return text


class OverrideForm(RuleForm):
    """Overrides of the code by operators; an empty field leaves it to the code."""

    def __init__(
        self, *args: Any, request: HttpRequest, row: Schedule, **kwargs: Any
    ) -> None:
        in_force = row.data_in_force
        super().__init__(
            *args,
            request=request,
            job_type=row.job_type_id,
            sensitive=sensitive_of(request, row),
            value=in_force,
            **kwargs,
        )
        for field in self.fields.values():
            field.required = False
        is_overridden = row.data_override is not None
        self.initial = {
            "rule": typed_rule(row.rule_override, row.time_zone),
            "time_zone": row.time_zone_override or "",
            "new_data": self.locked.text if is_overridden else "",
        }
        rule = rule_in_words(row.rule, row.time_zone)
        as_code = gettext("Empty: the code's value (%(value)s).")
        self.fields["rule"].help_text = " ".join(
            [str(EXAMPLES), as_code % {"value": rule}]
        )
        self.fields["time_zone"].help_text = as_code % {
            "value": display.visible(row.time_zone)
        }
        self.fields["new_data"].help_text = gettext(
            "A JSON object, in place of all data. Empty: the code's data."
        )
        if not is_overridden:
            self.fields["new_data"].widget.attrs["placeholder"] = self.locked.text
        if not may(request, VIEW_DATA):
            del self.fields["new_data"]

    def clean_time_zone(self) -> str:
        return super().clean_time_zone() if self.cleaned_data["time_zone"] else ""

    def chosen(self) -> dict[str, Any]:
        names = {"rule": "rule", "time_zone": "time_zone", "new_data": "data"}
        return {
            names[field]: self.cleaned_data[field] or None
            if field != "new_data"
            else self.cleaned_data[field]
            for field in self.changed_data
        }


class ScheduleForm(RuleForm):
    queue = QueueField()
    priority = PriorityField(
        help_text=_("-100 to 100; higher runs first. Empty: the job type's priority.")
    )
    missed = forms.ChoiceField(
        label=_("Missed firings"),
        choices=Missed.choices,
        help_text=_("The jobs for firings that were due while no worker ran."),
    )
    missed_within = LengthField(
        label=_("Missed within"),
        help_text=HOW_LONG,
    )
    missed_most = forms.IntegerField(
        label=_("Most missed"),
        min_value=1,
        max_value=MOST_MISSED,
        help_text=_("The most jobs enqueued at once."),
    )
    overlap = forms.ChoiceField(
        label=_("Overlap"),
        choices=Overlap.choices,
        help_text=_("While a job of the schedule is not finished."),
    )
    jitter = LengthField(
        label=_("Jitter"),
        required=False,
        help_text=_("Jobs are due up to this much later than their moment."),
    )
    starts = MomentField(label=_("Starts"), help_text=_("Empty: now."))
    ends = MomentField(label=_("Ends"), help_text=_("Empty: never."))

    def __init__(
        self,
        *args: Any,
        request: HttpRequest,
        job_type: JobType,
        row: Schedule | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            *args,
            request=request,
            job_type=job_type.name,
            sensitive=list(job_type.sensitive),
            value=_skeleton(job_type.name) if row is None else row.data,
            **kwargs,
        )
        self.options: dict[str, Any] = dict(row.options) if row else {}
        self.initial = {
            **(_initial_of(row) if row else INITIAL),
            "time_zone": row.time_zone if row else default_time_zone(),
            "new_data": self.locked.text,
            "queue": self.options.get("queue", ""),
            "priority": self.options.get("priority"),
        }
        own = gettext("%(name)s, the job type's")
        queue = self.fields["queue"]
        assert isinstance(queue, QueueField)
        own %= {"name": display.visible(job_type.queue)}
        known = {*catalogue.queue_names(request), self.options.get("queue", "")} - {""}
        queue.offer(sorted(known), own)
        if row is not None and not may(request, VIEW_DATA):
            del self.fields["new_data"]

    def clean(self) -> dict[str, Any]:
        cleaned_data = super().clean() or {}
        starts, ends = cleaned_data.get("starts"), cleaned_data.get("ends")
        if starts and ends and ends < starts:
            self.add_error("ends", gettext("It ends before it begins."))
        return cleaned_data

    def values(self, *, changed: bool) -> dict[str, Any]:
        """The values, or those that were changed, as ``operations`` takes
        them."""
        cleaned = self.cleaned_data
        given = [name for name in cleaned if not changed or name in self.changed_data]
        values = {
            VALUES.get(name, name): cleaned[name]
            for name in given
            if name not in ("name", "queue", "priority")
        }
        if {"queue", "priority"} & set(given):
            own = {"queue": cleaned["queue"] or None, "priority": cleaned["priority"]}
            options = {**self.options, **own}
            values["options"] = {k: v for k, v in options.items() if v is not None}
        return values


class NewScheduleForm(ScheduleForm):
    name = forms.CharField(
        label=_("Name"),
        max_length=NAME_LENGTH,
        help_text=_("A name that no other schedule has."),
    )
    field_order = ("name",)


VALUES: Final = {"new_data": "data"}

# The columns that the forms replace.
OVERRIDDEN: Final = ("rule_override", "time_zone_override", "data_override")
EDITED: Final = (
    *("rule", "time_zone", "data", "options", "missed", "missed_within"),
    *("missed_most", "overlap", "jitter", "starts_at", "ends_at"),
)
INITIAL: Final = {
    "missed": DEFAULT.missed,
    "missed_within": DEFAULT.within,
    "missed_most": DEFAULT.most,
    "overlap": Overlap.ALLOW,
}


def _initial_of(row: Schedule) -> dict[str, Any]:
    return {
        "rule": typed_rule(row.rule, row.time_zone),
        "missed": row.missed,
        "missed_within": row.missed_within,
        "missed_most": row.missed_most,
        "overlap": row.overlap,
        "jitter": row.jitter,
        "starts": row.starts_at,
        "ends": row.ends_at,
    }


def _skeleton(job_type: str) -> dict[str, None]:
    declaration = registry.get(job_type)
    if declaration is None:
        return {}
    needed = [a for a in arguments_of(declaration) if a.default is MISSING]
    return {argument.name: None for argument in needed}


def typed_rule(text: str | None, zone: str) -> str:
    if text is None:
        return ""
    try:
        return typed_text(parse(text, zone))
    except ValueError:
        return text


def typed_moments(given: Mapping[str, Any], row: Schedule | None) -> Moments:
    """The next moments of what is typed; where nothing is, of what the code says."""
    rule = str(given.get("rule", "")).strip() or (row.rule if row else "")
    zone = str(given.get("time_zone", "")).strip()
    zone = zone or (row.time_zone if row else default_time_zone())
    if not rule:
        return Moments()
    if len(rule) > LONGEST_RULE or "\x00" in rule + zone:
        return Moments(problem=gettext("This is invalid."))
    try:
        period = _typed_period(given, row)
        return moments_of(parse(rule, known_time_zone(zone)), zone, period)
    except ValueError as error:
        return Moments(problem=display.visible(str(error)))
    except ValidationError as error:
        return Moments(problem=" ".join(error.messages))


def _typed_period(given: Mapping[str, Any], row: Schedule | None) -> Period:
    if row is not None and "starts" not in given:
        return period_of(row)
    field = MomentField()
    starts, ends = (field.clean(given.get(name, "")) for name in ("starts", "ends"))
    return Period(starts_at=starts, ends_at=ends)


def _checked(check: Callable[[str], Any], text: str) -> str:
    try:
        check(text)
    except ValueError as error:
        raise ValidationError(str(error)) from error
    return text
