"""The action that overrides a limit by key, or holds one key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import (
    ActionForm,
    ConfirmedAction,
    Done,
    Question,
    Rows,
)
from django_jobqueue.admin.actions.row_marks import MARKS, marks_of
from django_jobqueue.admin.parts.display import visible
from django_jobqueue.conf import GREATEST, conf
from django_jobqueue.domain.per_key import LONGEST_KEY, MOST_SHARE
from django_jobqueue.domain.policy import NO_LIMIT
from django_jobqueue.domain.rates import LENGTH, rate_override_problem
from django_jobqueue.models import KeyLimit, KeyOverride
from django_jobqueue.text import numbers


class OverrideForm(ActionForm):
    """Of which key, and how many of its jobs run at once."""

    only_key = forms.BooleanField(
        label=_("One key only"), required=False, help_text=_("Otherwise all keys.")
    )
    key = forms.CharField(
        label=_("Key"), required=False, max_length=LONGEST_KEY, strip=False
    )
    concurrency = forms.IntegerField(
        label=_("Running jobs per key"),
        required=False,
        min_value=NO_LIMIT,
        max_value=GREATEST,
        help_text=_(
            "0 holds the jobs back; -1 is unlimited. Empty: no override: the code's "
            "limit, or for one key the limit of all keys."
        ),
    )

    rate = forms.CharField(
        label=_("Rate of each key"),
        required=False,
        max_length=LENGTH,
        help_text=_(
            "Starts of one key in any window, for example: 100/m, or 10/s burst 3, or "
            "unlimited."
        ),
    )

    share = forms.IntegerField(
        label=_("Share of the key"),
        required=False,
        min_value=1,
        max_value=MOST_SHARE,
        help_text=_("Jobs this key may start per turn. Default: 1."),
    )

    of = forms.CharField(required=False, strip=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if len(self.rows) != 1:
            return
        key = _shown_key(self.request)
        now = overrides_of(self.rows[0], key)
        self.initial.update({name: value or "" for name, value in now.items()})
        self.initial["concurrency"] = now["concurrency"]
        self.initial["of"] = _of(key)
        if key is not None:
            self.initial.update(only_key=True, key=key)

    def clean_rate(self) -> str | None:
        """Refuse what the operation refuses."""
        rate = self.cleaned_data["rate"] or None
        if problem := rate_override_problem(rate):
            raise forms.ValidationError(problem)
        return rate

    def clean(self) -> dict[str, Any]:
        """Refuse a share of all keys, and what was written without seeing the overrides
        that it replaces: those of another key than the page was made for."""
        cleaned = super().clean() or {}
        if cleaned.get("share") is not None and not cleaned.get("only_key"):
            self.add_error("share", _("A share belongs to one key: name it."))
        key = cleaned.get("key") if cleaned.get("only_key") else None
        if MARKS in self.data and cleaned.get("of") != _of(key):
            self._show_replaced(key)
        return cleaned

    def _show_replaced(self, key: str | None) -> None:
        now = overrides_of(self.rows[0], key)
        marks = marks_of(self.rows, lambda row: _replaced(row, key))
        # The page is made for this key from now on.
        self.data = {**dict(self.data.items()), "of": _of(key), MARKS: marks}
        if all(value is None for value in now.values()):
            return
        text = gettext(
            "It has overrides that this would replace: running jobs %(concurrency)s, "
            "rate %(rate)s, share %(share)s. Save again to replace them."
        )
        self.add_error("key", text % {name: _text(now[name]) for name in now})


class OverrideLimit(ConfirmedAction):
    """Say how many jobs of each key, or of one, run at once."""

    name = "override"
    label = _("Override")
    rights = ("view_keylimit", "change_keylimit")
    form_class: ClassVar[type[ActionForm]] = OverrideForm

    def replaced(self, request: HttpRequest, row: Any) -> Sequence[Any]:
        """The overrides of all keys, or of the key that the page is made for."""
        return _replaced(row, _shown_key(request))

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """The limit, and the effect."""
        text = gettext("Override the limit %(name)s?")
        return Question(
            text % {"name": ", ".join(visible(row.name) for row in rows)},
            [
                *map(_now, rows),
                gettext("No running job is stopped. The change applies at once."),
            ],
        )

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Write it; the history keeps the values."""
        by = request.user.get_username()
        key = cleaned["key"] if cleaned["only_key"] else None
        changed, entry = [], ""
        for row in rows:
            entries = [
                values
                for values in self._changes(row.name, key, cleaned, by)
                if values is not None
            ]
            if entries:
                changed.append(row)
                entry = ", ".join(entries)
                if key is not None:
                    # The key is in the audit: histories have no arguments of jobs.
                    entry = gettext("One key: %(change)s") % {"change": entry}
        message = gettext("The override was saved.")
        if not changed:
            message = gettext("Nothing changed.")
        return Done(message, (), changed, entry)

    def _changes(
        self, name: str, key: str | None, cleaned: dict[str, Any], by: str
    ) -> Iterator[str | None]:
        """Write each value; yields what changed, in words."""
        rate = operations.override_key_rate(name, cleaned["rate"], key=key, by=by)
        yield _change(rate.before, rate.after)
        number = operations.override_limit(name, cleaned["concurrency"], key=key, by=by)
        yield _change(number.before, number.after)
        if key is not None:
            share = cleaned["share"]
            taken = operations.override_key_share(name, share, key=key, by=by)
            yield _change(taken.before, taken.after)


def overrides_of(limit: KeyLimit, key: str | None) -> dict[str, Any]:
    """The overrides of all keys of a limit, or of this one."""
    if key is None:
        return {
            "concurrency": limit.concurrency_override,
            "rate": limit.rate_override,
            "share": None,
        }
    overrides = KeyOverride.objects.using(conf.database)
    one = overrides.filter(limit_key=f"{limit.pk} {key}").first() or KeyOverride()
    return {"concurrency": one.concurrency, "rate": one.rate, "share": one.share}


def _replaced(limit: KeyLimit, key: str | None) -> Sequence[Any]:
    return [key, *overrides_of(limit, key).values()]


def _of(key: str | None) -> str:
    """All keys, or this one, as the form has it."""
    return "" if key is None else f"={key}"


def _shown_key(request: HttpRequest) -> str | None:
    """The key whose overrides the page shows; None for those of all keys."""
    of = request.POST.get("of")
    if of is None:
        return request.GET.get("key")
    return of[1:] if of else None


def _change(before: Any, after: Any) -> str | None:
    """The change in words; None if there is none."""
    if before == after:
        return None
    text = gettext("%(before)s → %(after)s")
    return text % {"before": _text(before), "after": _text(after)}


CODE: Final = "–"


def _now(limit: KeyLimit) -> str:
    """How many run of each key, and how many the code allows."""
    text = gettext("Running jobs per key, now: %(now)s; in code: %(code)s.")
    override = limit.concurrency_override
    code = NO_LIMIT if limit.concurrency is None else limit.concurrency
    return text % {
        "now": _text(code if override is None else override),
        "code": _text(code),
    }


def _text(override: int | str | None) -> str:
    if override is None:
        return CODE
    if isinstance(override, str):
        return override
    return "∞" if override == NO_LIMIT else numbers.number(override)
