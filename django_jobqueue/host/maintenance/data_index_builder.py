"""Makes and drops the indexes that job types declare on their data."""

from __future__ import annotations

import logging
import threading
from typing import Final

from django.db import Error, connections

from django_jobqueue.conf import conf
from django_jobqueue.store import data_indexes
from django_jobqueue.store.connection import Database, DjangoDatabase
from django_jobqueue.store.data_indexes import Differences

logger = logging.getLogger("django_jobqueue.maintenance")

THREAD: Final = "jobqueue-data-indexes"


class DataIndexBuilder:
    """Checks whether anything is to be done; does it in a thread of its own, since it
    takes minutes on a large archive."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None

    def check(self, db: Database, *, drops: bool) -> None:
        """Start what is missing. ``drops`` also what nobody declares any more: not
        right after a start, when old and new code run beside each other."""
        if self._thread is not None and self._thread.is_alive():
            return
        differences = data_indexes.differences(db)
        undeclared = differences.undeclared if drops else ()
        todo = differences._replace(undeclared=undeclared)
        if todo != Differences((), (), ()):
            self._thread = threading.Thread(
                target=_work, args=(todo,), name=THREAD, daemon=True
            )
            self._thread.start()

    def wait(self, seconds: float) -> None:
        """Until it is done; for tests and for the command."""
        if self._thread is not None:
            self._thread.join(seconds)


def _work(todo: Differences) -> None:
    db = DjangoDatabase(conf.database)
    try:
        for name in (*todo.broken, *todo.undeclared):
            data_indexes.drop(db, name)
            logger.info("the index %s was dropped", name)
        for index in todo.missing:
            where = f"{'.'.join(index.path)} of {index.job_type}"
            logger.info("making the index %s on %s", index.name, where)
            data_indexes.make(db, index)
            logger.info("the index %s on %s is there", index.name, where)
    except Error as error:  # no right to do it, or no connection; the next check tries
        logger.warning("an index on the data of jobs: %s", str(error).strip())
    finally:
        connections[conf.database].close()
