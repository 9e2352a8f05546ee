"""What this worker counted since it last added to the minute roll-ups."""

from __future__ import annotations

from django_jobqueue.outcomes import Verb
from django_jobqueue.store.finish import Finished
from django_jobqueue.store.rollup import Count
from django_jobqueue.worker.attempt import Attempt


class Tally:
    """Counts and times of attempts, by job type and queue. One thread uses it."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], Count] = {}

    def __bool__(self) -> bool:
        return bool(self._counts)

    def add(self, attempt: Attempt, finished: Finished) -> None:
        """Count one attempt."""
        job = attempt.job
        key = (job.job_type, job.queue)
        count = self._counts.get(key)
        if count is None:
            count = self._counts[key] = Count(*key)
        match finished.outcome.verb:
            case Verb.SUCCEED:
                count.succeeded += 1
            case Verb.FAIL:
                count.failed += 1
            case Verb.RETRY:
                count.retried += 1
            case _:
                count.other += 1
        if finished.outcome.verb is not Verb.EXPIRE:
            count.attempt(ran=finished.ran, waited=attempt.waited)

    def take(self) -> list[Count]:
        """The counts so far, to be written; counting starts anew."""
        counts, self._counts = list(self._counts.values()), {}
        return counts

    def put_back(self, counts: list[Count]) -> None:
        """These could not be written; keep them, unless newer ones took their place."""
        for count in counts:
            self._counts.setdefault((count.job_type, count.queue), count)
