"""Keeps the handler of an atomic job from ending the transaction that it shares with
its completion."""

from __future__ import annotations

import re
from typing import Any, Final

from django.db.transaction import TransactionManagementError
from psycopg.pq import TransactionStatus

from django_jobqueue.exceptions import Fail

# The first word tells; a savepoint may be rolled back to.
ENDS: Final = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/|;)*"
    r"(?:commit|end|abort|prepare\s+transaction"
    r"|rollback(?!\s+(?:(?:work|transaction)\s+)?to\b))\b",
    re.IGNORECASE | re.DOTALL,
)


class TransactionGuard:
    """To be put around every statement on a Django connection while the handler runs.

    It refuses a statement that would end the transaction. One that ended it all the
    same, in the middle of a text or past Django, is noticed by the state of the
    connection: that is known without asking the server.
    """

    def __init__(self, wrapper: Any) -> None:
        self._wrapper = wrapper
        self._has_begun = False  # Django begins it with the first statement
        self._is_lost = False

    def __call__(
        self, execute: Any, statement: Any, params: Any, many: bool, context: Any
    ) -> Any:
        if isinstance(statement, str) and ENDS.match(statement):
            raise TransactionManagementError(
                "An atomic job cannot end its transaction; this statement was not "
                "executed. Raise an exception to undo what the job did."
            )
        self.check()
        try:
            return execute(statement, params, many, context)
        finally:
            self._has_begun = True
            self._note()

    def check(self) -> None:
        """Raises Fail if the transaction is another than at first: to try again could
        do twice what was committed."""
        self._note()
        if self._is_lost:
            raise Fail(
                "the handler ended the transaction of its atomic job; its work "
                "until then was committed or rolled back separately from the job"
            )

    def _note(self) -> None:
        raw = self._wrapper.connection
        if self._has_begun and raw is not None:
            idle = raw.info.transaction_status == TransactionStatus.IDLE
            self._is_lost = self._is_lost or idle
