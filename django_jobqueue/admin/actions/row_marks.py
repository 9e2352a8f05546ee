"""Marks in forms: nobody saves over what somebody else has written meanwhile.

A page whose form replaces values of rows carries a mark of each of these rows, made of
the values that are replaced. What is sent locks the rows and makes the marks again: a
row with another mark stays as it is, and the page says so and shows what holds now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from django.db.models.query import QuerySet
from django.http import HttpRequest
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext

MARKS: Final = "marks"  # the field of the form
LENGTH: Final = 20  # of a mark: a thousand of them fit into a page
SALT: Final = "django_jobqueue.admin.actions.row_marks"

Values = Callable[[Any], Sequence[Any]]  # of a row, that the form replaces


def mark_of(*values: Any) -> str:
    """A digest that identifies these values and reveals nothing about them."""
    return salted_hmac(SALT, repr(values), algorithm="sha256").hexdigest()


def marks_of(rows: Iterable[Any], values: Values) -> str:
    """The marks of these rows, as the field has them; empty if nothing is replaced."""
    return " ".join(mark for row in rows if (mark := _row_mark(row, values)))


def marks_for(form: Any, rows: Iterable[Any], values: Values) -> str:
    """The marks that a page with this form carries. A form that is shown again for its
    errors keeps those that it had: its fields have the values of that time."""
    if form is not None and form.is_bound:
        return str(form.data.get(MARKS, ""))
    return marks_of(rows, values)


def unchanged(request: HttpRequest, rows: Sequence[Any], values: Values) -> list[Any]:
    """The rows that are as the page showed them; all, if there was no page."""
    sent = request.POST.get(MARKS)
    if not sent:
        return list(rows)
    marks = set(sent.split())
    return [row for row in rows if _row_mark(row, values) in marks]


def locked(queryset: QuerySet[Any], *, waits: bool) -> QuerySet[Any]:
    """These rows, which nobody else changes until the transaction ends; without those
    that somebody is changing, unless it ``waits`` for them."""
    return queryset.select_for_update(no_key=True, skip_locked=not waits, of=("self",))


def changed_meanwhile() -> str:
    """The message to whoever has sent a form that is out of date."""
    return gettext(
        "Nothing was saved: this was changed after you opened the page. These are the "
        "current values."
    )


def _row_mark(row: Any, values: Values) -> str:
    replaced = values(row)
    return mark_of(str(row.pk), *replaced)[:LENGTH] if replaced else ""
