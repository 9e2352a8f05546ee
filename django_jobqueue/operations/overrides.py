"""Override the policy that the code declares for a job type."""

from __future__ import annotations

from datetime import timedelta
from typing import Unpack

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.job_options import OVERRIDES, TypeOverrides
from django_jobqueue.domain.registry import registry
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.operations.audit_log import record
from django_jobqueue.operations.checks import Name, must_exist, one_name
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.job_types import Change
from django_jobqueue.text.suggestions import did_you_mean


@sync_only()
def override(
    name: Name,
    *,
    using: str | None = None,
    by: str = "",
    **values: Unpack[TypeOverrides],
) -> dict[str, Change]:
    """Override options of this job type; None clears an override.

    ``name`` is that of the job type, or its handler. The options are ``priority``,
    ``max_attempts`` (-1 is unlimited), ``timeout`` (a timedelta; zero is unlimited),
    ``concurrency`` (-1 is unlimited, 0 pauses), ``rate`` (a string such as "100/m" or
    "unlimited"), ``summary`` (shown for each job in lists), ``keep_succeeded`` and
    ``keep_unsuccessful`` (timedeltas). Omitted options stay as they are, even if
    somebody else changes them at the same time. Workers obey from their next claim,
    without a restart; ``priority`` holds for jobs enqueued from now on.

    Returns the changed options. Raises UnknownJobType, InvalidArguments, and
    TypeError for an option that cannot be overridden.
    """
    for option, value in values.items():
        if option not in OVERRIDES:
            hint = did_you_mean(option, OVERRIDES)
            raise TypeError(f"override has no option {option!r}.{hint}")
        if problem := OVERRIDES[option].problem(value):
            raise InvalidArguments(f"{option} {problem}")
    job_type, db = one_name(name), DjangoDatabase(using)
    _check_endpoint(job_type, values)
    stored = {option: OVERRIDES[option].normal(v) for option, v in values.items()}
    changed = job_types.override(db, job_type, stored)
    must_exist(db, [job_type], [] if changed is None else [job_type])
    changed = changed or {}
    texts = {
        option: " → ".join(
            "–" if v is None else str(v) for v in (one.before, one.after)
        )
        for option, one in changed.items()
    }
    record(
        "override",
        by,
        len(changed),
        {"job_type": job_type, "overrides": texts},
        using=using,
    )
    return changed


def _check_endpoint(job_type: str, values: TypeOverrides) -> None:
    """Raises InvalidArguments for what ``remote_job(endpoint=…)`` refuses, too."""
    declaration = registry.get(job_type)
    is_unlimited = values.get("timeout") == timedelta(0)
    if is_unlimited and declaration is not None and declaration.endpoint:
        raise InvalidArguments(
            f"timeout cannot be unlimited: jobs of {job_type} are sent to an endpoint, "
            "and one whose endpoint never calls back would run forever."
        )
