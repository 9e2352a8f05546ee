"""The names of queues that are known, and a remark where one is not."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from django_jobqueue.conf import conf
from django_jobqueue.domain.registry import registry
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.models import JobType, Queue, Worker
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import stats
from django_jobqueue.text.suggestions import did_you_mean


def warn_of_unknown(console: Console, names: Iterable[str]) -> None:
    """Remark on queues that nothing names. A queue needs no declaration, so any name is
    right, but most others are slips."""
    if not console.verbosity or conf.mode != "queue":
        return
    known = _known()
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            console.warn(f"No job type, worker or job names the queue {name!r}.{hint}")


def _known() -> set[str]:
    alias = conf.database
    subscribed = Worker.objects.using(alias).values_list("queues", flat=True)
    return {
        *(declaration.policy.queue for declaration in registry),
        *JobType.objects.using(alias).values_list("queue", flat=True),
        *Queue.objects.using(alias).values_list("name", flat=True),
        *chain.from_iterable(queues for queues in subscribed if queues),
        *(depth.queue for depth in stats.depths(DjangoDatabase())),
    }
