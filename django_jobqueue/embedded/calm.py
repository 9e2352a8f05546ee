"""Whether an embedded worker has nothing to do."""

from __future__ import annotations

from django_jobqueue.embedded.house import House
from django_jobqueue.embedded.tenant import Tenant

SHOWN = 5  # jobs


class Calm:
    """Of one who waits for it: that the worker held nothing and found nothing counts
    from when it was first asked."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._tenant: Tenant | None = None
        self._asked_at = 0  # rounds of the dispatcher

    def has_come(self) -> bool:
        """Whether a look that began since found nothing to do; has it look if not."""
        tenant = self._house.tenant
        if tenant is None or len(self._house.tenants) > 1:
            return False
        dispatcher = tenant.worker.dispatcher
        if tenant is not self._tenant:
            self._tenant, self._asked_at = tenant, dispatcher.rounds
            dispatcher.jobs_arrived(behind=True)
            return False
        if dispatcher.rounds == self._asked_at:
            return False
        if tenant.worker.is_idle:
            return True
        if tenant.worker.is_empty:
            dispatcher.wake()  # does what it finished allow something else?
        return False

    @property
    def what_goes_on(self) -> str:
        """For people: what it does instead."""
        tenant = self._tenant
        if tenant is None:
            return "the worker has not started; is the database there, and migrated?"
        if tenant.is_paused:
            return "the worker is paused by an operator"
        held = list(tenant.worker.held.values())
        if not held:
            return "the worker still finds jobs that it could claim"
        shown = [f"{a.job.id} ({a.job.job_type})" for a in held[:SHOWN]]
        more = ", …" if len(held) > SHOWN else ""
        return f"the worker still has {len(held)} jobs: {', '.join(shown)}{more}"
