"""Pages with actions: addresses, rights, buttons, and the page that asks.

``action.py`` says how an action is declared. The selected objects travel as one field
of the form, because Django refuses more than a thousand fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Final

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.db.models.query import QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.utils.translation import gettext

from django_jobqueue.admin.actions.action import (
    Action,
    ActionForm,
    Button,
    ConfirmedAction,
    Rows,
    left_out,
)
from django_jobqueue.admin.actions.drafts import draft, may_draft
from django_jobqueue.admin.actions.list_menu import (
    keys_of,
    menu_entry,
    menu_name,
    too_many,
)
from django_jobqueue.admin.actions.row_marks import (
    MARKS,
    Values,
    changed_meanwhile,
    locked,
    marks_for,
    unchanged,
)
from django_jobqueue.admin.base import JobQueueAdmin
from django_jobqueue.admin.parts import display
from django_jobqueue.conf import conf
from django_jobqueue.exceptions import JobQueueError

MOST: Final = 1_000  # selected at once
FEW: Final = 100  # done in the request, also for users who may start bulk operations
EXAMPLES: Final = 10  # shown on the page that asks
SEPARATOR: Final = "\n"


class ActionAdmin(JobQueueAdmin):
    """A page whose objects operators do something with."""

    page_actions: ClassVar[Sequence[Action]] = ()
    action_columns: ClassVar[Sequence[str]] = ()  # that actions read; empty: all
    most_selected: ClassVar[int] = MOST
    waits_for_rows: ClassVar[bool] = True  # that somebody changes at this moment
    key_in_path: ClassVar[str] = "<path:object_id>"

    def __init__(self, model: type[models.Model], admin_site: admin.AdminSite) -> None:
        super().__init__(model, admin_site)
        in_menu = (one for one in self.page_actions if one.menu_label is not None)
        self.actions = [menu_entry(one) for one in in_menu]

    # Addresses, rights and buttons.

    def get_urls(self) -> list[URLPattern]:
        """An address for each action, before Django's own."""
        own = [
            path(
                f"{one.name}/"
                if one.is_for_selection
                else f"{self.key_in_path}/{one.name}/",
                self.admin_site.admin_view(partial(self.perform, action=one)),
                name=self._url_name(one),
            )
            for one in self.page_actions
        ]
        return [*own, *super().get_urls()]

    def get_actions(
        self, request: HttpRequest, action_location: Any = None
    ) -> dict[str, Any]:
        """The menu of the list, without the actions that this user may not do."""
        forbidden = {
            menu_name(one) for one in self.page_actions if not self.may_do(request, one)
        }
        # From Django 6.1 on there may be a menu on the page of an object, too.
        where = {} if action_location is None else {"action_location": action_location}
        entries = super().get_actions(request, **where)
        return {name: one for name, one in entries.items() if name not in forbidden}

    def may_do(self, request: HttpRequest, action: Action, row: Any = None) -> bool:
        """True if the user may see these objects and do this with them."""
        return self.has_view_permission(request, row) and action.is_allowed(
            request, row
        )

    def address_of(
        self, action: Action, row: Any = None, *, then: str = "", **query: str
    ) -> str:
        """The address of an action on this object, and the page to go to ``then``."""
        name = f"{self.admin_site.name}:{self._url_name(action)}"
        if not action.is_for_selection:
            return reverse(name, args=[quote(row.pk)])
        if row is None:
            return reverse(name)
        asked = {"keys": row.pk, "next": then, **query}
        return f"{reverse(name)}?{urlencode(asked)}"

    def buttons(self, request: HttpRequest, row: Any) -> list[Button]:
        """The actions that this user may do with this object now."""
        return [
            Button(
                one.label_for(row),
                self.address_of(one, row, then=request.path),
                one.danger,
                one.is_post_only,
                one.is_tool,
            )
            for one in self.page_actions
            if one.is_button and one.applies_to(row) and self.may_do(request, one, row)
        ]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add the buttons: links at the top of the page, and others that post."""
        buttons = self.buttons(request, context["original"])
        context["buttons"] = [one for one in buttons if one.is_tool or not one.is_post]
        context["post_buttons"] = [
            one for one in buttons if one.is_post and not one.is_tool
        ]
        return super().render_change_form(request, context, *args, **kwargs)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Tell the template whether all that match can be selected."""
        bulk_actions = [one.bulk_action for one in self.page_actions if one.bulk_action]
        extra = {
            "may_bulk": any(
                may_draft(request, bulk_action) for bulk_action in bulk_actions
            )
        }
        return super().changelist_view(request, {**extra, **(extra_context or {})})

    # The address of an action.

    def perform(
        self, request: HttpRequest, object_id: Any = None, *, action: Action
    ) -> HttpResponse:
        """Check the rights, find the object or objects, and let the action answer."""
        if not self.may_do(request, action):
            raise PermissionDenied
        if isinstance(action, ConfirmedAction):
            return self._ask_or_do(request, action)
        if action.is_for_selection:  # of an object that is not there yet
            return action.respond(self, request, None)
        row = self.get_object(request, unquote(str(object_id)))
        if row is None:
            return self.gone(request, str(object_id))
        if not self.may_do(request, action, row):
            raise PermissionDenied
        if action.is_post_only and request.method != "POST":
            return self.not_posted(row)
        if reason := action.refusal(request, row):
            return self.back_to(request, row, reason, messages.ERROR)
        return action.respond(self, request, row)

    def gone(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Answer for an object that does not exist."""
        raise Http404

    def not_posted(self, row: Any) -> HttpResponse:
        """Answer a GET where only a POST does something."""
        return HttpResponseNotAllowed(["POST"])

    def back_to(
        self, request: HttpRequest, row: Any, text: str, level: int = messages.SUCCESS
    ) -> HttpResponseRedirect:
        """To the page of this object, of whatever model, with a message."""
        self.message_user(request, text, level)
        return self.to(row)

    def to(self, row: Any) -> HttpResponseRedirect:
        """To the page of this object, of whatever model."""
        return HttpResponseRedirect(display.url_of(row._meta.label_lower, row.pk))

    def _ask_or_do(self, request: HttpRequest, action: ConfirmedAction) -> HttpResponse:
        rows: list[Any] = []
        if action.takes_rows:
            sent = request.POST if request.method == "POST" else request.GET
            keys = keys_of(self.model, sent.get("keys", "").split(SEPARATOR)) or []
            if len(keys) > self.most_selected:
                return self._warned(
                    request, too_many(self.most_selected), messages.ERROR
                )
            rows = self.rows_of(request, keys)
            if not rows:
                text = gettext("The selected rows no longer exist.")
                return self._warned(request, text)
        form = self._form(request, action, rows)
        if "confirmed" not in request.POST or not form.is_valid():
            return self.ask(request, action, rows, form)
        if not self._do(request, action, rows, form.cleaned_data):
            self.message_user(request, changed_meanwhile(), messages.ERROR)
            rows = self.rows_of(request, [row.pk for row in rows])
            form = action.form_class(request=request, rows=rows)
            return self.ask(request, action, rows, form)
        return HttpResponseRedirect(self.next_url(request))

    def _do(
        self,
        request: HttpRequest,
        action: ConfirmedAction,
        rows: Rows,
        cleaned: dict[str, Any],
    ) -> bool:
        """Do it and log it in one transaction; tell the operator. False if others have
        changed all of the rows since they were shown."""
        try:
            with transaction.atomic(using=conf.database):
                same = self.held(request, rows, partial(action.replaced, request))
                if rows and not same:
                    return False
                done = action.do(request, same, cleaned)
                user: Any = request.user
                if changed := list(done.changed):
                    LogEntry.objects.log_actions(user.pk, changed, CHANGE, done.entry)
        except JobQueueError as error:
            self.message_user(request, str(error), messages.ERROR)
            return True
        if done.message:
            self.message_user(request, done.message, messages.SUCCESS)
        for warning in (*done.warnings, *left_out(len(rows), len(same))):
            self.message_user(request, warning, messages.WARNING)
        return True

    def held(self, request: HttpRequest, rows: Rows, values: Values) -> Rows:
        """Those of the rows that are as the page showed them, and stay so until the
        transaction ends."""
        if not request.POST.get(MARKS):
            return rows
        keys = [row.pk for row in rows]
        return unchanged(request, self.rows_of(request, keys, is_held=True), values)

    # The menu of the list.

    def select(
        self, request: HttpRequest, action: Action, queryset: QuerySet[Any]
    ) -> HttpResponse | None:
        """Do an entry of the menu; None shows the list again, with a message."""
        if self._is_for_workers(request, action, queryset):
            jobs: Any = self.get_changelist_instance(request)
            back = request.get_full_path()
            return draft(request, action.bulk_action, jobs.selection, back=back)
        keys = self.selected_keys(request, queryset)
        if not keys:
            self.message_user(
                request, gettext("Nothing was selected."), messages.WARNING
            )
            return None
        if len(keys) > self.most_selected:
            self.message_user(request, too_many(self.most_selected), messages.ERROR)
            return None
        return action.respond_to_selected(self, request, keys)

    def selected_keys(
        self, request: HttpRequest, queryset: QuerySet[Any]
    ) -> Sequence[Any]:
        """The selected keys; one more than are allowed at once, if there are more."""
        return list(queryset.values_list("pk", flat=True)[: self.most_selected + 1])

    def rows_of(
        self, request: HttpRequest, keys: Sequence[Any], *, is_held: bool = False
    ) -> list[Any]:
        """The selected rows that still exist, with the columns that actions read;
        locked if they are to be ``is_held``."""
        queryset = self.get_queryset(request).filter(pk__in=keys)
        if is_held:
            queryset = locked(queryset, waits=self.waits_for_rows)
        if self.action_columns:
            queryset = queryset.only(*self.action_columns)
        return list(queryset.order_by("pk"))

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any], *args: Any, **kwargs: Any
    ) -> HttpResponse | None:
        """Django's own, which fails on text that is not a key of the model."""
        selected = request.POST.getlist(ACTION_CHECKBOX_NAME)
        if keys_of(self.model, selected) is None:
            self.message_user(
                request, gettext("Nothing was selected."), messages.WARNING
            )
            return None
        response: HttpResponse | None = super().response_action(
            request, queryset, *args, **kwargs
        )
        return response

    def _is_for_workers(
        self, request: HttpRequest, action: Action, queryset: QuerySet[Any]
    ) -> bool:
        """True to draft a bulk operation: the user may, selected all that match, and
        these are more than a few. They may be more if only the newest were searched."""
        everything = request.POST.get("select_across") == "1"
        bulk_action = action.bulk_action
        if not (bulk_action and everything and may_draft(request, bulk_action)):
            return False
        is_few = len(queryset.values_list("pk")[: FEW + 1]) <= FEW
        jobs: Any = self.get_changelist_instance(request)
        return not (is_few and jobs.is_all_searched)

    # The page that asks.

    def ask(
        self,
        request: HttpRequest,
        action: ConfirmedAction,
        rows: Rows,
        form: ActionForm | None = None,
    ) -> TemplateResponse:
        """The page that asks. Only its button, which posts, does the action."""
        form = form or self._form(request, action, rows)
        return self.show_question(
            request,
            action=self.address_of(action),
            button=action,
            question=action.ask(request, rows),
            form=form,
            keys=SEPARATOR.join(str(row.pk) for row in rows),
            marks=marks_for(form, rows, partial(action.replaced, request)),
            examples=[
                (self.url_of(row), display.visible(str(row))) for row in rows[:EXAMPLES]
            ],
            others=max(0, len(rows) - EXAMPLES),
            next=self.next_url(request),
        )

    def show_question(
        self,
        request: HttpRequest,
        *,
        template: str = "confirm.html",
        question: Any,
        form: Any,
        **context: Any,
    ) -> TemplateResponse:
        """A page with a question, a form, and a button that posts to ``action``."""
        media = self.media + form.media
        context |= {"title": question.text, "question": question, "form": form}
        return self.show(request, template, media=media, **context)

    def next_url(self, request: HttpRequest) -> str:
        """The page to return to: the one that the question came from, or the list."""
        here = self.list_url
        if request.path == here:
            return request.get_full_path()
        sent = request.POST if request.method == "POST" else request.GET
        wanted = sent.get("next") or request.GET.get("next", "")
        allowed = {request.get_host()}
        if url_has_allowed_host_and_scheme(wanted, allowed, request.is_secure()):
            return wanted
        return here

    def _url_name(self, action: Action) -> str:
        return f"{self.url_prefix}_{action.name}"

    def _form(
        self, request: HttpRequest, action: ConfirmedAction, rows: Rows
    ) -> ActionForm:
        data = request.POST if "confirmed" in request.POST else None
        return action.form_class(data, request=request, rows=rows)

    def _warned(
        self, request: HttpRequest, text: str, level: int = messages.WARNING
    ) -> HttpResponse:
        self.message_user(request, text, level)
        return HttpResponseRedirect(self.next_url(request))
