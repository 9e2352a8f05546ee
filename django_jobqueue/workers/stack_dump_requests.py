"""Answers the question where this worker is now."""

from __future__ import annotations

from collections.abc import Sequence

from django_jobqueue.processes.loop import FOREVER, Loop
from django_jobqueue.store import worker_rows
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.workers.executors.base import Executor
from django_jobqueue.workers.stack_dump import stacks


class StackDumper(Loop):
    """Begins with the first question, so that a worker that is asked nothing has no
    thread and no connection for it."""

    name = "answerer"

    def __init__(
        self, worker: int, connection: OwnConnection, executors: Sequence[Executor]
    ) -> None:
        super().__init__()
        self._worker = worker
        self._connection = connection
        self._executors = executors
        self._asked = 0
        self._answered = 0

    def ask(self, stack_request: int) -> None:
        """Answer the inquiry with this number, unless that was done."""
        if stack_request == self._asked:
            return
        self._asked = stack_request
        self.wake()
        if not self.has_started:
            self.start()

    def tick(self) -> float:
        """Write down where everything is."""
        stack_request = self._asked
        if stack_request != self._answered:
            said = {"inquiry": stack_request, **stacks(self._executors)}
            worker_rows.answer(self._connection, self._worker, said)
            self._connection.close()
            self._answered = stack_request
        return FOREVER if stack_request == self._asked else 0.0
