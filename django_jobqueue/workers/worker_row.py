"""The new row of a worker."""

from __future__ import annotations

import os
from collections.abc import Sequence

from django_jobqueue.conf import conf
from django_jobqueue.processes import identity
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.worker_rows import NewWorker


def row_of(name: str, config: WorkerConfig, job_types: Sequence[str]) -> NewWorker:
    """The row of a worker of this process that starts."""
    pid = os.getpid()
    return NewWorker(
        name=name,
        host=identity.host(),
        pid=pid,
        identity=identity.identity(pid),
        supervisor=config.supervisor,
        release=conf.release,
        queues=config.queues,
        job_types=job_types,
        threads=config.threads,
        async_slots=config.async_slots,
        versions=identity.versions(),
    )
