"""The action that gives hosts other processes, slots or queues."""

from __future__ import annotations

import re
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import ActionForm, Done, Question, Rows
from django_jobqueue.admin.hosts.host_actions import HostAction
from django_jobqueue.admin.hosts.host_cells import LABELS, queues_text
from django_jobqueue.domain.host_plans import BOUNDS, MOST_QUEUES
from django_jobqueue.domain.policy import queue_problem
from django_jobqueue.text import numbers

EVERY: Final = "*"


class ScaleForm(ActionForm):
    """The plan; what is left empty stays as it is."""

    processes = forms.IntegerField(
        label=_("Processes"), required=False, min_value=0, max_value=BOUNDS["processes"]
    )
    threads = forms.IntegerField(
        label=_("Threads"), required=False, min_value=0, max_value=BOUNDS["threads"]
    )
    async_slots = forms.IntegerField(
        label=_("Async slots"),
        required=False,
        min_value=0,
        max_value=BOUNDS["async_slots"],
    )
    queues = forms.CharField(label=_("Queues"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        helps = {
            "processes": gettext("0 parks the host: it stays alive and runs nothing."),
            "threads": gettext("For sync handlers, of each process."),
            "async_slots": gettext("For async handlers, of each process."),
            "queues": gettext("Names separated by commas; * is every queue."),
        }
        for name, text in helps.items():
            self.fields[name].help_text = f"{text} {self._now(name)}"

    def clean_queues(self) -> Any:
        """None is every queue. Raises ValidationError for what is no name."""
        names = [
            name for name in re.split(r"[,\s]+", self.cleaned_data["queues"]) if name
        ]
        if names == [EVERY]:
            return None
        if len(names) > MOST_QUEUES:
            text = gettext("At most %(count)s queues.")
            raise ValidationError(text % {"count": numbers.number(MOST_QUEUES)})
        if EVERY in names or any(map(queue_problem, names)):
            raise ValidationError(
                _("A queue's name has no space, comma or control character.")
            )
        return names

    def clean(self) -> dict[str, Any]:
        """Something must be said, and under the plan something must be able to run."""
        cleaned = super().clean() or {}
        if self.errors:
            return cleaned
        changes = changes_of(cleaned)
        if not changes:
            raise ValidationError(
                _("Give a number of processes, threads or async slots, or queues.")
            )
        for host in self.rows:
            if host.embedded:
                continue
            plan = {name: changes.get(name, getattr(host, name)) for name in BOUNDS}
            if plan["processes"] and not (plan["threads"] or plan["async_slots"]):
                raise ValidationError(
                    _("With 0 threads and 0 async slots nothing can run.")
                )
        return cleaned

    def _now(self, name: str) -> str:
        """The plan of a single host; several hosts keep their own values."""
        if len(self.rows) != 1:
            return gettext("Empty: unchanged.")
        value = getattr(self.rows[0], name)
        shown = queues_text(value) if name == "queues" else numbers.number(value)
        return gettext("Now: %(value)s. Empty: unchanged.") % {"value": shown}


class ScaleHosts(HostAction):
    """Have other processes, slots or queues."""

    name = "scale"
    menu_label = _("Scale selected %(verbose_name_plural)s")
    label = _("Scale")
    takes_embedded = False
    replaces = (*BOUNDS, "queues", "desired")
    form_class = ScaleForm

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """How it is done, and for how long it lasts."""
        hosts = self.asked(rows)
        text = ngettext("Scale %(count)s host?", "Scale %(count)s hosts?", len(hosts))
        facts = [
            gettext(
                "Workers are replaced one by one, each when its successor works. "
                "Running jobs finish, and no attempt is spent."
            ),
            gettext(
                "It lasts until the host ends; the next one starts from flags and "
                "settings."
            ),
        ]
        count = numbers.number(len(hosts))
        return Question(text % {"count": count}, facts, self.warnings(rows))

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Ask them."""
        by, changes = request.user.get_username(), changes_of(cleaned)
        ids = [host.pk for host in self.asked(rows)]
        asked = set(operations.scale_hosts(ids, by=by, **changes))
        entry = gettext("Asked: %(verb)s.") % {"verb": in_words(changes)}
        return self.done(rows, asked, entry)


def changes_of(cleaned: dict[str, Any]) -> dict[str, Any]:
    """The part of the plan that the form says something about."""
    changes = {name: cleaned[name] for name in BOUNDS if cleaned[name] is not None}
    if cleaned["queues"] != []:  # None is every queue
        changes["queues"] = cleaned["queues"]
    return changes


def in_words(changes: dict[str, Any]) -> str:
    """A change of a plan, for the history."""
    return ", ".join(
        gettext("%(label)s: %(value)s")
        % {
            "label": LABELS[name],
            "value": queues_text(value) if name == "queues" else numbers.number(value),
        }
        for name, value in changes.items()
    )
