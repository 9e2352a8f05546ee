"""An operator's verbs on what is selected: asked, confirmed, done, written down.

Each verb has an address of its own that checks its own permission. What is selected
travels as one field, since Django refuses more than a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Final

from django import VERSION
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import models, transaction
from django.db.models.query import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.utils.translation import gettext

from django_jobqueue.admin.parts.display import visible
from django_jobqueue.admin.verbs.bulk_actions import DraftingAdmin
from django_jobqueue.admin.verbs.verb import Question, Rows, Verb, VerbForm
from django_jobqueue.conf import conf
from django_jobqueue.exceptions import JobQueueError
from django_jobqueue.text import numbers

MOST: Final = 1_000  # selected at once
EXAMPLES: Final = 10  # shown on the page that asks
SEPARATOR: Final = "\n"


class OperatedAdmin(DraftingAdmin):
    """A page whose objects operators do something with."""

    verb_columns: ClassVar[Sequence[str]] = ()  # what verbs read of a row
    most_selected: ClassVar[int] = MOST

    def __init__(self, model: type[models.Model], admin_site: admin.AdminSite) -> None:
        super().__init__(model, admin_site)
        self.actions = [_action(verb) for verb in self.verbs]

    def get_urls(self) -> list[URLPattern]:
        """An address for each verb, before those of the objects."""
        own = [
            path(
                f"{verb.name}/",
                self.admin_site.admin_view(partial(self.operate, verb=verb)),
                name=f"{self._prefix}_{verb.name}",
            )
            for verb in self.verbs
        ]
        return [*own, *super().get_urls()]

    def operate(self, request: HttpRequest, *, verb: Verb) -> HttpResponse:
        """Ask, or do what was confirmed, which only a POST can."""
        if not self.may_do(request, verb):
            raise PermissionDenied
        said = request.POST if request.method == "POST" else request.GET
        keys = _keys(self.model, said.get("keys", "").split(SEPARATOR)) or []
        if len(keys) > self.most_selected:
            self._refuse(request)
            return HttpResponseRedirect(self._next(request))
        rows = self.rows_of(request, keys)
        if not rows:
            text = gettext("Nothing of what was selected is here any more.")
            self.message_user(request, text, messages.WARNING)
            return HttpResponseRedirect(self._next(request))
        form = self._form(request, verb, rows)
        if "confirmed" not in request.POST or not form.is_valid():
            return self._page(request, verb, rows, form)
        self._do(request, verb, rows, form.cleaned_data)
        return HttpResponseRedirect(self._next(request))

    def select(
        self, request: HttpRequest, verb: Verb, queryset: QuerySet[Any]
    ) -> HttpResponse | None:
        """What Django's menu of the list calls: ask about what is selected there."""
        drafted = self.drafted(request, verb, queryset)
        if drafted is not None:
            return drafted
        keys = list(queryset.values_list("pk", flat=True)[: self.most_selected + 1])
        if not keys:
            self._nothing(request)
            return None
        if len(keys) > self.most_selected:
            self._refuse(request)
            return None
        rows = self.rows_of(request, keys)
        return self._page(request, verb, rows, self._form(request, verb, rows))

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any], *args: Any, **kwargs: Any
    ) -> HttpResponse | None:
        """Django's, for keys that are keys."""
        selected = request.POST.getlist(ACTION_CHECKBOX_NAME)
        if _keys(self.model, selected) is None:
            self._nothing(request)
            return None
        response: HttpResponse | None = super().response_action(
            request, queryset, *args, **kwargs
        )
        return response

    def question_page(
        self,
        request: HttpRequest,
        verb: Verb,
        question: Question,
        form: VerbForm,
        selected: dict[str, Any],
    ) -> TemplateResponse:
        """The page that asks, and whose button is the only one that does it."""
        context = {
            **self.admin_site.each_context(request),
            **selected,
            "title": question.text,
            "opts": self.opts,
            "flat_crumbs": VERSION < (6, 1),
            "media": self.media + form.media,
            "verb": verb,
            "question": question,
            "form": form,
            "next": self._next(request),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/jobqueue/confirm.html", context)

    def rows_of(self, request: HttpRequest, keys: Sequence[Any]) -> list[Any]:
        """The selected rows that are still there, with the columns that verbs read."""
        queryset = self.get_queryset(request).filter(pk__in=keys)
        if self.verb_columns:
            queryset = queryset.only(*self.verb_columns)
        return list(queryset.order_by("pk"))

    def may_do(self, request: HttpRequest, verb: Verb) -> bool:
        """Whether the user may see these objects and do this with them."""
        allowed: Callable[[HttpRequest], bool] = getattr(
            self, f"has_{verb.permission}_permission"
        )
        return self.has_view_permission(request) and allowed(request)

    def buttons(self, request: HttpRequest, row: Any) -> list[dict[str, Any]]:
        """The verbs that this user may do with this object."""
        return [
            {
                "label": verb.button,
                "url": self._question_url(verb, row, request.path),
                "danger": verb.danger,
            }
            for verb in self.verbs
            if verb.applies_to(row) and self.may_do(request, verb)
        ]

    @property
    def _prefix(self) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}"

    @property
    def _namespace(self) -> str:
        return self.admin_site.name

    def _do(
        self, request: HttpRequest, verb: Verb, rows: Rows, said: dict[str, Any]
    ) -> None:
        try:
            with transaction.atomic(using=conf.database):
                done = verb.do(request, rows, said)
                _write_down(request, list(done.changed), done.entry)
        except JobQueueError as error:
            self.message_user(request, str(error), messages.ERROR)
            return
        if done.message:
            self.message_user(request, done.message, messages.SUCCESS)
        for warning in done.warnings:
            self.message_user(request, warning, messages.WARNING)

    def _form(self, request: HttpRequest, verb: Verb, rows: Rows) -> VerbForm:
        data = request.POST if "confirmed" in request.POST else None
        return verb.form_class(data, request=request, rows=rows)

    def _page(
        self, request: HttpRequest, verb: Verb, rows: Rows, form: VerbForm
    ) -> TemplateResponse:
        selected = {
            "action": reverse(f"{self._namespace}:{self._prefix}_{verb.name}"),
            "keys": SEPARATOR.join(str(row.pk) for row in rows),
            "examples": [
                (self._url(row), visible(str(row))) for row in rows[:EXAMPLES]
            ],
            "others": max(0, len(rows) - EXAMPLES),
        }
        return self.question_page(
            request, verb, verb.ask(request, rows), form, selected
        )

    def _url(self, row: Any) -> str:
        name = f"{self._namespace}:{self._prefix}_change"
        url: str = reverse(name, args=[quote(row.pk)])
        return url

    def _question_url(self, verb: Verb, row: Any, then: str) -> str:
        address = reverse(f"{self._namespace}:{self._prefix}_{verb.name}")
        return f"{address}?{urlencode({'keys': row.pk, 'next': then})}"

    def _next(self, request: HttpRequest) -> str:
        """Where to go afterwards: back to where the question came from."""
        here = reverse(f"{self._namespace}:{self._prefix}_changelist")
        if request.path == here:
            return request.get_full_path()
        said = request.POST if request.method == "POST" else request.GET
        wanted = said.get("next", "")
        allowed = {request.get_host()}
        if url_has_allowed_host_and_scheme(wanted, allowed, request.is_secure()):
            return wanted
        return here

    def _nothing(self, request: HttpRequest) -> None:
        text = gettext("Nothing was selected.")
        self.message_user(request, text, messages.WARNING)

    def _refuse(self, request: HttpRequest) -> None:
        text = gettext(
            "At most %(most)s can be selected at once. Nothing was changed: narrow the "
            "filters, or select on the page."
        )
        most = {"most": numbers.number(self.most_selected)}
        self.message_user(request, text % most, messages.ERROR)


def _keys(model: type[models.Model], texts: Sequence[str]) -> list[Any] | None:
    """These as keys of the model; None if one of them is none."""
    keys = []
    for text in texts:
        if "\x00" in text:
            return None
        try:
            keys.append(model._meta.pk.to_python(text.strip("\r")))
        except ValidationError:
            return None
    return keys


def _action(verb: Verb) -> Callable[..., HttpResponse | None]:
    """A verb as an action of Django's list."""

    @admin.action(permissions=[verb.permission], description=verb.label)
    def action(
        model_admin: OperatedAdmin, request: HttpRequest, queryset: QuerySet[Any]
    ) -> HttpResponse | None:
        return model_admin.select(request, verb, queryset)

    action.__name__ = verb.name
    return action


def _write_down(request: HttpRequest, changed: list[models.Model], entry: str) -> None:
    """In the history of each object, in one statement."""
    user: Any = request.user
    if changed:
        LogEntry.objects.log_actions(user.pk, changed, CHANGE, entry)
