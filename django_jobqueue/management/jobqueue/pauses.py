"""``jobqueue pause`` and ``jobqueue resume``, of job types or queues."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Final

from django.core.management.base import CommandError

from django_jobqueue.conf import conf
from django_jobqueue.domain.policy import queue_problem
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.inputs import values_of, warn_of_unknown
from django_jobqueue.management.jobqueue.subcommand import Options, VerbCommand, by
from django_jobqueue.models import JobType, Queue
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.stats.pauses import is_paused
from django_jobqueue.verbs.columns import local
from django_jobqueue.verbs.declarations import Argument, On, Verb, flag
from django_jobqueue.verbs.pauses import PAUSE, PAUSE_QUEUE, RESUME, RESUME_QUEUE


class Pausing(VerbCommand):
    """Does one thing to job types or, with --queue, to queues."""

    of_queues: Verb

    def all_arguments(self) -> Iterator[Argument]:
        names = f"Job types to be {self.verb.done}."
        yield Argument("names", names, "NAME", words="+")
        yield flag("queue", "The names are those of queues.")
        yield from self.verb.arguments
        yield from super().all_arguments()

    def run(self, console: Console, options: Options) -> None:
        names = list(dict.fromkeys(options["names"]))
        for name in names:
            problem = queue_problem(name) if options["queue"] else None
            if problem:
                raise CommandError(f"The name of a queue {problem}")
        verb = self.of_queues if options["queue"] else self.verb
        self.do(console, options, verb, names)

    @abstractmethod
    def do(
        self, console: Console, options: Options, verb: Verb, names: list[str]
    ) -> None:
        """Do it, and answer."""


class Pause(Pausing):
    of_queues = PAUSE_QUEUE
    json = """one object: paused (names), until (null: until they are resumed),
    replaced (names that were already paused)."""

    def do(
        self, console: Console, options: Options, verb: Verb, names: list[str]
    ) -> None:
        how = values_of(verb.arguments, options, database_now())
        until = how.get("resume_at")
        if verb.on is On.QUEUE:
            warn_of_unknown(console, names)
        model: Any = Queue if verb.on is On.QUEUE else JobType
        rows = model.objects.using(conf.database).filter(pk__in=names).order_by("pk")
        before = [row.name for row in rows if is_paused(row)]
        paused = sorted(verb.function(names, by=by(), **how))
        if console.is_json:
            console.json({"paused": paused, "until": until, "replaced": before})
            return
        end = "until they are resumed" if until is None else f"until {local(until)}"
        console.info(f"{verb.on.capitalize()}s paused {end}: {', '.join(paused)}.")
        if before:
            names_text = ", ".join(before)
            console.warn(f"Already paused; reason and end are replaced: {names_text}.")


class Resume(Pausing):
    of_queues = RESUME_QUEUE
    json = "one object: resumed (names), not_paused (those that were not)."

    def do(
        self, console: Console, options: Options, verb: Verb, names: list[str]
    ) -> None:
        resumed = sorted(verb.function(names, by=by()))
        left = [name for name in names if name not in resumed]
        if console.is_json:
            console.json({"resumed": resumed, "not_paused": left})
            return
        if resumed:
            console.info(f"{verb.on.capitalize()}s resumed: {', '.join(resumed)}.")
        for name in left:
            console.warn(f"The {verb.on} {name!r} was not paused.")


PAUSING: Final = Pause(PAUSE)
RESUMING: Final = Resume(RESUME)
