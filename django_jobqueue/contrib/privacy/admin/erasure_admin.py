"""Personal data: the record of erasures; find a value, erase it, delete the rows,
stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import (
    Action,
    ActionForm,
    Button,
    MakeObject,
    Question,
)
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.base import may
from django_jobqueue.admin.lists.columns import column
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.work.work_actions import Resume, RunStep, Stop
from django_jobqueue.admin.work.work_admin import WorkAdmin
from django_jobqueue.contrib.privacy import personal_data
from django_jobqueue.contrib.privacy.admin.erasure_page import (
    ERASE_DATA,
    all_places,
    progress_in_list,
    progress_of,
    value_for,
)
from django_jobqueue.contrib.privacy.models import Erasure
from django_jobqueue.contrib.privacy.personal_value import (
    LONGEST,
    LONGEST_KEY,
    SHORTEST,
    ErasureAct,
)
from django_jobqueue.domain.states import WorkState
from django_jobqueue.search import SearchError
from django_jobqueue.search.tokens import tokens
from django_jobqueue.text import numbers


class FindForm(ActionForm):
    """The value to look for."""

    value = forms.CharField(
        label=_("Value"),
        max_length=LONGEST,
        help_text=_("An e-mail address, a customer number, a name."),
        widget=forms.TextInput(attrs={"size": 60, "autocomplete": "off"}),
    )
    key = forms.CharField(
        label=_("Key"),
        max_length=LONGEST_KEY,
        required=False,
        help_text=_(
            "Only values under this key of data, or this path: customer.id. Empty: "
            "everywhere, also in free text."
        ),
    )


class Find(MakeObject):
    """Look for a value in all tables: a draft, which its page shows. A POST, so that no
    address has the value."""

    name = "find"
    label = _("Find personal data")
    button = _("Find")
    rights = (ERASE_DATA,)
    form_class = FindForm

    def ask(self, request: HttpRequest) -> Question:
        """Where it is looked for."""
        text = gettext(
            "All tables are searched for the value: queued and archived jobs, "
            "failures, log lines, schedules, operations and the audit. Nothing is "
            "changed yet."
        )
        return Question(
            gettext("Find personal data"),
            [text],
            [
                gettext("Without a key the value needs at least %(number)d characters.")
                % {"number": SHORTEST}
            ],
        )

    def make(
        self, page: ActionAdmin, request: HttpRequest, cleaned: dict[str, Any]
    ) -> HttpResponse:
        """Make the draft."""
        made = personal_data.find(by=request.user.get_username(), **cleaned)
        return page.to(Erasure(id=made.id))


class ConfirmForm(ActionForm):
    """Nothing brings the values back, so the number of rows is typed."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        required=False,
        help_text=_("Stored with the record, without the value."),
        widget=forms.TextInput(attrs={"size": 60}),
    )
    typed = forms.CharField(
        label=_("Number of rows"),
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        count = numbers.number(self.rows[0].total)
        text = gettext("Type %(count)s to confirm.") % {"count": count}
        self.fields["typed"].help_text = text

    def clean_typed(self) -> str:
        """The number that the page shows."""
        digits = "".join(c for c in self.cleaned_data["typed"] if c.isdigit())
        if digits != str(self.rows[0].total):
            raise ValidationError(_("Type the number of rows to confirm."))
        return digits


class StartErasure(Action):
    """Do it with the rows of a draft, after a question."""

    rights = (ERASE_DATA,)
    danger = True
    act: ClassVar[ErasureAct]
    title: ClassVar[Any]
    effect: ClassVar[Any]

    def applies_to(self, row: Any) -> bool:
        """To a draft that found something, and is counted."""
        return row.state == WorkState.DRAFT and bool(row.total)

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: Erasure
    ) -> HttpResponse:
        """Ask; start it if the form is valid."""
        if not self.applies_to(row):
            text = gettext("Nothing was changed: its state has changed.")
            return page.back_to(request, row, text, messages.WARNING)
        is_post = request.method == "POST"
        form = ConfirmForm(
            request.POST if is_post else None, request=request, rows=[row]
        )
        if is_post and form.is_valid():
            by, reason = request.user.get_username(), form.cleaned_data["reason"]
            if personal_data.start(row.pk, self.act, reason=reason, by=by):
                page.log_change(request, row, gettext("Started."))
            return page.to(row)
        address = page.address_of(self, row)
        return page.show_question(
            request,
            question=Question(
                str(self.title), self._facts(request, row), _warnings(row)
            ),
            form=form,
            button=Button(str(self.label).rstrip("…"), address, danger=True),
            action=address,
            next=page.url_of(row),
        )

    def _facts(self, request: HttpRequest, row: Erasure) -> list[str]:
        counts = ", ".join(
            f"{source.label} {numbers.number(row.counted[name]['rows'])}"
            for name, source in all_places().items()
            if name in row.counted
        )
        shown = display.visible(value_for(request, row))
        value = gettext("Value: %(value)s") % {"value": shown}
        if row.key:
            key = {"key": display.visible(row.key)}
            value += " · " + gettext("under the key %(key)s") % key
        total = ngettext(
            "%(number)s row contains it: %(counts)s.",
            "%(number)s rows contain it: %(counts)s.",
            row.total or 0,
        )
        total %= {"number": numbers.number(row.total or 0), "counts": counts}
        return [value, total, str(self.effect)]


class Erase(StartErasure):
    """Erase the values, and keep the rows."""

    name = "erase"
    act = ErasureAct.ERASE
    label = _("Erase the values…")
    title = _("Erase the values and keep the rows?")
    effect = _(
        "Each occurrence becomes “[erased]”; the rows and their other values stay."
    )


class Delete(StartErasure):
    """Delete the rows of jobs; elsewhere erase the values."""

    name = "delete-rows"
    act = ErasureAct.DELETE
    label = _("Delete the rows…")
    title = _("Delete the rows?")
    effect = _(
        "Jobs, failures and reports that contain it are deleted. In groups, schedules, "
        "operations and the audit the value becomes “[erased]”."
    )


class StopErasure(Stop):
    """Nothing more happens, and the value is forgotten; a draft is discarded."""

    stopped = _("Stopped. Its changes stay; the value is deleted.")

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: Erasure
    ) -> HttpResponse:
        """Stop or discard it."""
        if personal_data.discard(row.pk):
            page.message_user(request, gettext("Discarded, and the value deleted."))
            return HttpResponseRedirect(page.list_url)
        return super().respond(page, request, row)


def _warnings(row: Erasure) -> list[str]:
    effects = [one.effect for name, one in all_places().items() if name in row.counted]
    return [
        gettext("The values cannot be restored."),
        *map(str, filter(None, effects)),
    ]


def find_it(context: Mapping[str, Any]) -> str:
    """Offer to look for the value of a search everywhere, to users who may erase it."""
    request, value = context["request"], _value_of(context["search"].query)
    if value is None or not may(request, ERASE_DATA):
        return ""
    shown = {"value": value, "csrf_token": context.get("csrf_token")}
    return render_to_string("admin/jobqueue_privacy/find_it.html", shown)


def _value_of(query: str) -> tuple[str, str] | None:
    """The value that is searched, and its key; None if there is more than one."""
    try:
        words = list(tokens(query))
    except SearchError:
        return None
    if words and not any(word.name for word in words):
        return " ".join(word.value for word in words), ""
    if len(words) == 1 and words[0].path:
        return words[0].value, ".".join(words[0].path)
    return None


FIND: Final = Find()
RESUME: Final = Resume(personal_data.WORK, (ERASE_DATA,))
RUN_STEP: Final = RunStep(personal_data.WORK, (ERASE_DATA,))
STOP: Final = StopErasure(personal_data.WORK, (ERASE_DATA,))


class ErasureAdmin(WorkAdmin):
    """Erasures, by whom and when; never the values."""

    change_form_template = "admin/jobqueue_privacy/erasure.html"
    page_actions: ClassVar[Sequence[Action]] = (
        FIND,
        Erase(),
        Delete(),
        RESUME,
        RUN_STEP,
        STOP,
    )
    progress_in_list = staticmethod(progress_in_list)
    progress_of = staticmethod(progress_of)
    list_display = ("what", "state_pill", "rows", "by", "created")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Offer to find a value to users who may."""
        extra = {"find": self.address_of(FIND) if self.may_do(request, FIND) else ""}
        return super().changelist_view(request, {**extra, **(extra_context or {})})

    @column(description=_("act"))
    def what(self, erasure: Erasure) -> Any:
        """The action, and the short id."""
        label = erasure.get_act_display() or _("search")
        return display.lines([label, display.id_cell(erasure.pk)])

    @column(description=_("rows"))
    def rows(self, erasure: Erasure) -> str:
        """How many were changed; of a draft, how many hold the value."""
        if erasure.act:
            return numbers.number(sum(erasure.changed.values()))
        return numbers.number(sum(one["rows"] for one in erasure.counted.values()))
