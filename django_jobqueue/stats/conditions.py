"""Judges the conditions that operators are alerted to; the overview and ``jobqueue
health`` judge by the same rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_jobqueue.conf import conf
from django_jobqueue.domain.states import AlertCondition
from django_jobqueue.stats import current_state
from django_jobqueue.stats.current_state import Present, unpaused
from django_jobqueue.stats.time_window import HOUR
from django_jobqueue.stats.totals import Depths
from django_jobqueue.stats.unclaimed_jobs import Notice, notices
from django_jobqueue.store.connection import Database
from django_jobqueue.store.reading import failure_stats, history, old_transactions
from django_jobqueue.store.reading.failure_stats import Crashes
from django_jobqueue.store.reading.history import Counts
from django_jobqueue.store.reading.old_transactions import OldTransaction
from django_jobqueue.text import numbers
from django_jobqueue.text.numbers import span

ENOUGH: Final = 20  # finished jobs of a type; a share of fewer says nothing
MANY_CRASHES: Final = 3  # that may be a type's fault, in this hour and the last one

# Of the warnings about jobs that no worker claims; all others are unserved.
NOBODY_CLAIMS: Final = ("no_worker", "all_draining")


class Condition(NamedTuple):
    """A condition that holds. With its subject it is one alert."""

    name: AlertCondition
    subject: str  # a queue, a job type, or both; empty for the whole job queue
    text: str  # a sentence

    @property
    def key(self) -> tuple[str, str]:
        """The same while it holds, whatever its figures are."""
        return str(self.name), self.subject


@dataclass(frozen=True, slots=True)
class Judgement:
    """The conditions that hold now."""

    conditions: list[Condition]
    undecided: set[AlertCondition] = field(default_factory=set)  # cannot be judged now


def read(db: Database) -> Judgement:
    """Read the state of the job queue, and judge it."""
    present = current_state.read(db)
    failing = history.failing(
        db, HOUR.start(present.time), least=ENOUGH, percent=conf.alert_failed
    )
    crashes = crashing_types(failure_stats.crashes(db))
    by_key: dict[tuple[str, str], Condition] = {}
    for condition in (
        *map(_of_notice, notices(present)),
        *_backlogs(present),
        *(
            Condition(AlertCondition.FAILING, name, failing_text(name, counts))
            for name, counts in failing.types.items()
        ),
        *(
            Condition(AlertCondition.CRASHING, name, crashing_text(name, count))
            for name, count in crashes.items()
        ),
        *_old(old_transactions.oldest(db)),
    ):
        by_key.setdefault(condition.key, condition)
    # Whom the jobs wait for, shows only when some worker claims.
    nobody = any(name == AlertCondition.NO_WORKER for name, _subject in by_key)
    undecided = {AlertCondition.UNSERVED} if nobody else set()
    return Judgement(list(by_key.values()), undecided)


def waits_long(oldest: float | None, limit: float) -> bool:
    """True if the oldest ready job has waited for too many seconds."""
    return (oldest or 0.0) > limit


def is_old(transaction: OldTransaction | None) -> bool:
    """True if it has been open for too long."""
    return transaction is not None and transaction.age > conf.alert_transaction


def failing_text(job_type: str, counts: Counts) -> str:
    """The sentence about a job type that fails too often."""
    text = _(
        "%(share)s of the %(count)s jobs of type %(type)s that finished in the last "
        "hour failed."
    )
    return text % {
        "share": numbers.percent(counts.failed_share),
        "count": numbers.number(counts.finished),
        "type": job_type,
    }


def crashing_types(crashes: Mapping[str, Crashes]) -> dict[str, Crashes]:
    """The job types that kill workers, or may be those that do."""
    return {
        name: one for name, one in crashes.items() if one.is_suspected(MANY_CRASHES)
    }


def new_crash_text(error_class: str, job_type: str) -> str:
    """The sentence about a new failure that no handler raised; empty for others."""
    if error_class == failure_stats.CULPRIT:
        text = _("A job of type %(type)s kills its worker: it crashed alone.")
    elif error_class == failure_stats.LOST:
        text = _(
            "A worker died while a job of type %(type)s ran. Whether that job caused "
            "it is unknown."
        )
    else:
        return ""
    return text % {"type": job_type}


def crashing_text(job_type: str, crashes: Crashes) -> str:
    """The sentence about a job type that kills workers, or may be the one that does."""
    if crashes.by_culprits:
        count = crashes.by_culprits
        text = ngettext(
            "A job of type %(type)s kills its worker: it crashed alone. %(count)s "
            "attempt ended so within the last two hours.",
            "Jobs of type %(type)s kill their workers: they crashed alone. %(count)s "
            "attempts ended so within the last two hours.",
            count,
        )
    else:
        count = crashes.unexplained
        text = ngettext(
            "%(count)s worker died within the last two hours while jobs of type "
            "%(type)s ran. Whether one of them caused it is unknown.",
            "%(count)s workers died within the last two hours while jobs of type "
            "%(type)s ran. Whether one of them caused it is unknown.",
            count,
        )
    text %= {"count": numbers.number(count), "type": job_type}
    return f"{text} {_taken_along(crashes.took_along)}".strip()


def _taken_along(count: int) -> str:
    if not count:
        return ""
    text = ngettext(
        "%(count)s attempt at another job ended with them.",
        "%(count)s attempts at other jobs ended with them.",
        count,
    )
    return text % {"count": numbers.number(count)}


def old_transaction_text(transaction: OldTransaction) -> str:
    """The sentence about a transaction that has been open for too long."""
    values = {
        "time": span(transaction.age),
        "name": transaction.name,
        "pid": transaction.pid,
        "state": transaction.state,
    }
    if transaction.pid is None:
        text = _(
            "The prepared transaction %(name)s has been open for %(time)s. Until it "
            "ends, PostgreSQL cannot remove dead rows, and claims become slower."
        )
    else:
        text = _(
            "A transaction has been open for %(time)s: process %(pid)s of PostgreSQL, "
            "%(name)s, %(state)s. Until it ends, PostgreSQL cannot remove dead rows, "
            "and claims become slower."
        )
    return text % values


def _of_notice(notice: Notice) -> Condition:
    if notice.code in NOBODY_CLAIMS:
        return Condition(AlertCondition.NO_WORKER, "", notice.message)
    subject = " in ".join(filter(None, (notice.job_type, notice.queue)))
    return Condition(AlertCondition.UNSERVED, subject, notice.message)


def _backlogs(present: Present) -> Iterator[Condition]:
    by_queue: dict[str, Depths] = {}
    for depth in unpaused(present):
        by_queue.setdefault(depth.queue, Depths()).add(depth)
    for queue, depths in by_queue.items():
        if waits_long(depths.oldest, conf.alert_wait):
            text = ngettext(
                "%(jobs)s job is ready in queue %(queue)s; the oldest has waited for "
                "%(time)s.",
                "%(jobs)s jobs are ready in queue %(queue)s; the oldest has waited for "
                "%(time)s.",
                depths.ready,
            )
            jobs = numbers.number(depths.ready) + "+" * ("ready" in depths.at_least)
            values = {"jobs": jobs, "time": span(depths.oldest or 0.0)}
            text %= {**values, "queue": queue}
            yield Condition(AlertCondition.BACKLOG, queue, text)


def _old(transaction: OldTransaction | None) -> Iterable[Condition]:
    if transaction is not None and is_old(transaction):
        text = old_transaction_text(transaction)
        yield Condition(AlertCondition.OLD_TRANSACTION, "", text)
