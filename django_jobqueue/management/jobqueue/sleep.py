"""``jobqueue sleep`` and ``jobqueue wake``: whether hosts work in this database."""

from __future__ import annotations

from typing import Final

from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.subcommand import Options, VerbCommand, by
from django_jobqueue.verbs.database import SLEEP, WAKE


class DatabaseVerb(VerbCommand):
    def run(self, console: Console, options: Options) -> None:
        done = self.verb.function(by=by()) is not False
        console.info(self.verb.done if done else self.verb.not_done)


SLEEPING: Final = DatabaseVerb(SLEEP)
WAKING: Final = DatabaseVerb(WAKE)
