"""The keys of data whose values nobody sees without revealing them, as the job types
declare them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django_jobqueue.conf import conf
from django_jobqueue.models import JobType


def sensitive_keys(
    job_types: Sequence[str], *, fits: Callable[[str], bool] | None = None
) -> list[str]:
    """The keys of these job types; or of all, if none is named or none of them is
    declared. ``fits`` tells which job types the reader has to do with."""
    rows = JobType._default_manager.using(conf.database).order_by()
    keys = dict(rows.filter(pk__in=job_types).values_list("name", "sensitive"))
    if not keys:
        keys = dict(rows.exclude(sensitive=[]).values_list("name", "sensitive"))
    return [
        str(key)
        for name, names in keys.items()
        if (fits is None or fits(name)) and isinstance(names, list)
        for key in names
    ]
