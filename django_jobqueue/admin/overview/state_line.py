"""The state of the job queue in one line, above Django's index of all apps."""

from __future__ import annotations

from typing import Final, NamedTuple

from django.db import DatabaseError, connections, transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_jobqueue.admin.base import may
from django_jobqueue.admin.overview.overview_tables import count
from django_jobqueue.admin.parts.display import visible
from django_jobqueue.admin.tabs import OVERVIEW, address_of
from django_jobqueue.conf import conf
from django_jobqueue.stats import attention, overview
from django_jobqueue.stats.overview import Now
from django_jobqueue.stats.totals import by_queue, total
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.time_budget import lower_limit
from django_jobqueue.text import numbers

PATIENCE: Final = 500  # milliseconds of a statement: it is the index of other apps, too


class StateLine(NamedTuple):
    """The worst of what needs attention, or that all is well."""

    text: str
    url: str  # of the overview
    style: str
    others: str = ""  # how much else needs attention


def state_line(request: HttpRequest) -> StateLine | None:
    """The line for this user; None for those who may not see the overview."""
    url = address_of(request, OVERVIEW)
    is_there = connections[conf.database].vendor == "postgresql"
    if not url or not is_there or not may(request, "view_overview"):
        return None
    try:
        with transaction.atomic(using=conf.database):
            lower_limit(DjangoDatabase(), PATIENCE)
            return _line(overview.read_now(), url)
    except DatabaseError:  # no reason to refuse the index of all apps
        return StateLine(_("The state could not be read."), url, "jq-worry")


def _line(now: Now, url: str) -> StateLine:
    concerns = attention.concerns(now)
    if not concerns:
        return StateLine(_all_is_well(now), url, "jq-well")
    worst, *others = concerns
    count = len(others) + sum(one.others for one in concerns)
    more = ngettext("and %(count)s more", "and %(count)s more", count)
    return StateLine(
        visible(worst.message),
        url,
        "jq-worst" if worst.is_bad else "jq-worry",
        more % {"count": numbers.number(count)} if count else "",
    )


def _all_is_well(now: Now) -> str:
    depths = total(by_queue(now.present.depths, {}).values()).depths
    text = _("Nothing needs attention. Ready: %(ready)s, running: %(running)s.")
    running = numbers.number(depths.running)
    return text % {"ready": count(depths, "ready"), "running": running}
