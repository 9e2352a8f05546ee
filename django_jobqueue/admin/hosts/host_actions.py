"""Actions on hosts: drain, resume, restart, stop."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, ClassVar

from django.db.models import Sum
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import ConfirmedAction, Done, Question, Rows
from django_jobqueue.admin.hosts.host_cells import is_alive, is_drained
from django_jobqueue.domain.states import ALIVE
from django_jobqueue.models import Host, Worker
from django_jobqueue.text import numbers


class HostAction(ConfirmedAction):
    """A request in the rows of hosts, which each host reads and obeys."""

    rights = ("control_worker",)
    takes_embedded: ClassVar[bool] = True

    def applies_to(self, row: Any) -> bool:
        """Only to a living host that can do it."""
        return is_alive(row) and (self.takes_embedded or not row.embedded)

    def asked(self, rows: Rows) -> Sequence[Host]:
        """Those that can be asked, if they live."""
        return [row for row in rows if self.takes_embedded or not row.embedded]

    def warnings(self, rows: Rows, asked: Collection[Any] | None = None) -> list[str]:
        """Says what is left out: embedded workers, and the hosts that have ended, which
        are all that were not ``asked``."""
        hosts = self.asked(rows)
        embedded = len(rows) - len(hosts)
        ended = sum(
            not is_alive(host) if asked is None else host.pk not in asked
            for host in hosts
        )
        texts = [
            (
                embedded,
                ngettext(
                    "%(count)s embedded worker is left out: its own program loads its "
                    "code and sets its slots.",
                    "%(count)s embedded workers are left out: their own programs load "
                    "their code and set their slots.",
                    embedded,
                ),
            ),
            (
                ended,
                ngettext(
                    "%(count)s host has already ended.",
                    "%(count)s hosts have already ended.",
                    ended,
                ),
            ),
        ]
        return [text % {"count": numbers.number(n)} for n, text in texts if n]

    def done(self, rows: Rows, asked: Collection[Any], entry: str) -> Done:
        """These were asked."""
        text = ngettext(
            "Request sent to %(count)s host: %(verb)s.",
            "Request sent to %(count)s hosts: %(verb)s.",
            len(asked),
        )
        named = {"count": numbers.number(len(asked)), "verb": self.label}
        changed = [row for row in rows if row.pk in asked]
        return Done(
            text % named if asked else "", self.warnings(rows, asked), changed, entry
        )


class AskHosts(HostAction):
    """A request that needs no more words."""

    facts: ClassVar[Sequence[Any]]

    def ask(self, request: HttpRequest, rows: Rows) -> Question:
        """The effect, and the number of jobs that run there."""
        hosts = self.asked(rows)
        text = ngettext(
            "%(verb)s: %(count)s host?", "%(verb)s: %(count)s hosts?", len(hosts)
        )
        count = numbers.number(len(hosts))
        question = Question(text % {"verb": self.label, "count": count})
        running = _running_on(hosts)
        text = ngettext(
            "%(count)s job is running there.",
            "%(count)s jobs are running there.",
            running,
        )
        question.facts += [
            *map(str, self.facts),
            text % {"count": numbers.number(running)},
        ]
        question.warnings += self.warnings(rows)
        return question

    def do(self, request: HttpRequest, rows: Rows, cleaned: dict[str, Any]) -> Done:
        """Ask them."""
        by = request.user.get_username()
        ids = [host.pk for host in self.asked(rows)]
        asked = set(operations.ask_hosts(ids, self.name, by=by))
        entry = gettext("Asked: %(verb)s.") % {"verb": self.label}
        return self.done(rows, asked, entry)


class DrainHosts(AskHosts):
    """Take no new jobs."""

    name = "drain"
    menu_label = _("Drain selected %(verbose_name_plural)s")
    label = _("Drain")
    facts = (
        _("It finishes its running jobs, and claims no more until it is resumed."),
        _("A restart does not end that."),
    )

    def applies_to(self, row: Any) -> bool:
        """Only to a host that claims jobs."""
        return super().applies_to(row) and not is_drained(row)


class ResumeHosts(AskHosts):
    """Take jobs again."""

    name = "resume"
    menu_label = _("Resume selected %(verbose_name_plural)s")
    label = _("Resume")
    facts = (_("It claims jobs again."),)

    def applies_to(self, row: Any) -> bool:
        """Only to a host that is draining."""
        return super().applies_to(row) and is_drained(row)


class RestartHosts(AskHosts):
    """Load new code."""

    name = "restart"
    menu_label = _("Restart selected %(verbose_name_plural)s")
    label = _("Restart")
    takes_embedded = False
    facts = (
        _(
            "Another process first checks that the new code starts. If it does not, "
            "the host continues with the old code and says why."
        ),
        _(
            "Running jobs have the grace period to finish. For a second or two, until "
            "the new workers are ready, the host runs nothing: restart a part of the "
            "hosts at a time."
        ),
    )


class StopHosts(AskHosts):
    """Finish the running jobs, and end."""

    name = "stop"
    menu_label = _("Stop selected %(verbose_name_plural)s")
    label = _("Stop")
    danger = True
    facts = (
        _("It finishes its running jobs within its grace period, and ends."),
        _(
            "A service manager may start it again. To keep it from working, drain it, "
            "or scale it to 0 processes."
        ),
    )


def _running_on(hosts: Sequence[Host]) -> int:
    """How many jobs their workers run, by the workers' own rows."""
    names = [host.name for host in hosts if is_alive(host)]
    workers = Worker.objects.filter(supervisor__in=names, state__in=ALIVE)
    return workers.aggregate(running=Sum("running"))["running"] or 0
