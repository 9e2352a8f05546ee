"""What a verb of an operator is made of: it asks, it does, it says what came of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from django import forms
from django.db import models
from django.http import HttpRequest
from django.utils.translation import ngettext

from django_jobqueue.text import numbers

Rows = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a verb: what to tell the operator, and what to write down."""

    message: str
    warnings: Sequence[str] = ()
    changed: Iterable[models.Model] = ()
    entry: str = ""  # for the history of what changed

    @classmethod
    def of(cls, rows: Rows, changed: Collection[Any], text: str, entry: str) -> Done:
        """Some of the rows were changed, those with these keys; ``text`` has their
        ``count``, and the others are told as left out."""
        return cls(
            text % {"count": numbers.number(len(changed))} if changed else "",
            left_out(len(rows), len(changed)),
            [row for row in rows if row.pk in changed],
            entry,
        )


@dataclass(slots=True)
class Question:
    """What the operator is asked before it happens."""

    text: str
    facts: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class VerbForm(forms.Form):
    """What else the operator says; nothing, for most verbs."""

    def __init__(
        self, *args: Any, request: HttpRequest, rows: Rows, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.request = request
        self.rows = rows


class Verb:
    """One verb. A subclass says what it asks and what it does."""

    name: ClassVar[str]
    label: ClassVar[Any]  # in the list's menu
    button: ClassVar[Any]  # on the object's page, and to confirm
    permission: ClassVar[str]  # of has_…_permission
    form_class: ClassVar[type[VerbForm]] = VerbForm
    danger: ClassVar[bool] = False
    bulk_kind: ClassVar[str] = ""  # the bulk operation that does it with many jobs

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """The question for these rows."""
        raise NotImplementedError

    def do(self, request: HttpRequest, rows: Rows, said: dict[str, Any]) -> Done:
        """Do it; ``said`` is what the form came to."""
        raise NotImplementedError

    def applies_to(self, row: Any) -> bool:
        """Whether the page of this object offers it."""
        return True


def left_out(asked: int, done: int) -> list[str]:
    """A sentence about what was selected and not changed."""
    missed = asked - done
    if not missed:
        return []
    text = ngettext(
        "%(count)s was left as it is, because it changed meanwhile.",
        "%(count)s were left as they are, because they changed meanwhile.",
        missed,
    )
    return [text % {"count": numbers.number(missed)}]


def with_reason(text: str, reason: str) -> str:
    """What the history says: what was done, and why, if that was said."""
    return f"{text} {reason}".strip()
