"""An action is one button of an admin page, and everything behind it.

Each button of the job queue's pages is an instance of a subclass of ``Action``, in the
``page_actions`` of its page. ``ActionAdmin`` turns these declarations into addresses,
buttons and entries of the list's menu, so that every action is guarded in one way:

========================  ==============================================================
a subclass says           and gets from ``ActionAdmin``
========================  ==============================================================
``name``                  an address: ``<name>/`` for selected objects, else
                          ``<key of the object>/<name>/``
``label``, ``danger``     a button on the page of the object
``menu_label``            an entry in the menu of the list
``rights``,               403 for whoever lacks one of them, at the address too; no
``is_allowed()``          button and no entry in the menu
``applies_to()``          the button only on pages of objects in the right state
``refusal()``             an error message with the reason in place of the action, where
                          the object is in the wrong state by now
``is_post_only``          405, or the page of the object, for a GET; a button that posts
``form_class``, ``ask()`` a page that asks, shows what is selected, and has the form
``do()``                  a transaction, an entry in the history of each changed object,
                          and messages afterwards
``replaces``              nothing of another operator's lost: a row whose columns others
                          changed meanwhile is left alone (``row_marks.py``)
``respond()``             instead of the last two: an answer of its own
========================  ==============================================================

A ``ConfirmedAction`` is asked about and confirmed; a ``MakeObject`` has a form for what
is not there yet; any other ``Action`` answers by itself. Only a POST changes anything,
and Django checks its CSRF token.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from django_jobqueue.admin.base import may
from django_jobqueue.exceptions import JobQueueError
from django_jobqueue.text import numbers

if TYPE_CHECKING:
    from django_jobqueue.admin.actions.action_admin import ActionAdmin

Rows = Sequence[Any]


class Action:
    """One action on one object, which answers by itself."""

    name: ClassVar[str]  # in the address
    label: ClassVar[Any]  # on the button, and to confirm
    menu_label: ClassVar[Any] = None  # in the list's menu; None: it is not there
    rights: Sequence[str] = ()  # of the app, besides that to see the page
    danger: ClassVar[bool] = False
    is_button: ClassVar[bool] = True  # on the object's page
    is_post_only: ClassVar[bool] = False
    is_tool: ClassVar[bool] = False  # a button that posts, among those that are links
    is_for_selection: ClassVar[bool] = False  # the address names no object
    bulk_action: ClassVar[str] = ""  # the bulk operation that does it with many jobs
    replaces: ClassVar[Sequence[str]] = ()  # columns that it writes over

    def is_allowed(self, request: HttpRequest, row: Any = None) -> bool:
        """True if the user may do this, with this object if one is given."""
        return all(may(request, right) for right in self.rights)

    def applies_to(self, row: Any) -> bool:
        """True if the page of this object offers it."""
        return True

    def replaced(self, request: HttpRequest, row: Any) -> Sequence[Any]:
        """The values that it writes over: a row in which somebody has changed one after
        the page was made is not written."""
        return [getattr(row, name) for name in self.replaces]

    def label_for(self, row: Any) -> Any:
        """The label of the button on the page of this object."""
        return self.label

    def refusal(self, request: HttpRequest, row: Any) -> str:
        """The reason why it cannot be done with this object now; empty if it can."""
        return ""

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: Any
    ) -> HttpResponse:
        """Answer for this object, to a user who may do this."""
        raise NotImplementedError

    def respond_to_selected(
        self, page: ActionAdmin, request: HttpRequest, keys: Sequence[Any]
    ) -> HttpResponse:
        """Answer for the objects that were selected in the list."""
        raise NotImplementedError


class ShowAction(Action):
    """A page or file below the list, for whoever sees the list: it only shows."""

    is_for_selection = True
    is_button = False

    def is_allowed(self, request: HttpRequest, row: Any = None) -> bool:
        """Everyone who sees the list."""
        return True

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: Any
    ) -> HttpResponse:
        """Show it; nothing is posted there."""
        if request.method != "GET":
            return HttpResponseNotAllowed(["GET"])
        return self.show(page, request)

    def show(self, page: ActionAdmin, request: HttpRequest) -> HttpResponse:
        """The page, or the file."""
        raise NotImplementedError


class ActionForm(forms.Form):
    """The form on the page that asks; most actions have no fields."""

    def __init__(
        self, *args: Any, request: HttpRequest, rows: Rows, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.request = request
        self.rows = rows


class MakeObject(Action):
    """Make an object that is not there yet, of what a form on its own page says."""

    is_for_selection = True
    is_button = False
    button: ClassVar[Any]  # the label of what posts the form
    form_class: ClassVar[type[ActionForm]]

    def ask(self, request: HttpRequest) -> Question:
        """The text above the form."""
        raise NotImplementedError

    def make(
        self, page: ActionAdmin, request: HttpRequest, cleaned: dict[str, Any]
    ) -> HttpResponse:
        """Make it of the form's cleaned data, and answer. The form shows a
        JobQueueError."""
        raise NotImplementedError

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: Any
    ) -> HttpResponse:
        """Ask; make it if what was posted is valid."""
        is_post = request.method == "POST"
        data = request.POST if is_post else None
        form = self.form_class(data, request=request, rows=[])
        if is_post and form.is_valid():
            try:
                return self.make(page, request, form.cleaned_data)
            except JobQueueError as error:
                form.add_error(None, str(error))
        address = page.address_of(self)
        return page.show_question(
            request,
            question=self.ask(request),
            form=form,
            button=Button(self.button, address),
            action=address,
            next=page.list_url,
        )


class ConfirmedAction(Action):
    """An action on selected objects that asks on a page of its own.

    Its button on the page of an object selects that object alone.
    """

    is_for_selection = True
    takes_rows: ClassVar[bool] = True  # False: the form says what it is about
    form_class: ClassVar[type[ActionForm]] = ActionForm

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """The question about these objects."""
        raise NotImplementedError

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Do it; ``cleaned`` is the form's cleaned data."""
        raise NotImplementedError

    def respond_to_selected(
        self, page: ActionAdmin, request: HttpRequest, keys: Sequence[Any]
    ) -> HttpResponse:
        """Ask about them."""
        return page.ask(request, self, page.rows_of(request, keys))


@dataclass(slots=True)
class Question:
    """The title of the page that asks, and the sentences above its form."""

    text: str
    facts: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    button: str = ""  # that does it; without one, the label of the action
    way_back: Any = _("Cancel")  # the link that does nothing


@dataclass(frozen=True, slots=True)
class Done:
    """The result of an action: messages to the operator, and an entry in the log."""

    message: str
    warnings: Sequence[str] = ()
    changed: Iterable[models.Model] = ()
    entry: str = ""  # for the history of each changed object

    @classmethod
    def of(cls, rows: Rows, changed: Collection[Any], text: str, entry: str) -> Done:
        """The rows with these keys were changed. ``text`` takes their ``count``; a
        warning counts the other rows."""
        return cls(
            text % {"count": numbers.number(len(changed))} if changed else "",
            left_out(len(rows), len(changed)),
            [row for row in rows if row.pk in changed],
            entry,
        )


@dataclass(frozen=True, slots=True)
class Button:
    """A button as templates show it: a link, or a part of the form that posts."""

    label: Any
    url: str
    danger: bool = False
    is_post: bool = False
    is_tool: bool = False


def left_out(selected: int, done: int) -> list[str]:
    """A sentence about selected objects that were not changed."""
    missed = selected - done
    if not missed:
        return []
    text = ngettext(
        "%(count)s was skipped: it changed meanwhile.",
        "%(count)s were skipped: they changed meanwhile.",
        missed,
    )
    return [text % {"count": numbers.number(missed)}]


def with_reason(text: str, reason: str) -> str:
    """An entry of the history: the action, and the reason if one was given."""
    return f"{text} {reason}".strip()
