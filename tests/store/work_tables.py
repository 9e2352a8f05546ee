"""The statements of a module of the store."""

from __future__ import annotations

from types import ModuleType

from django_jobqueue.store.on_failure import composed
from django_jobqueue.store.work_rows import WorkTable

# Where statements are about tables of ours.
HOMES = (
    "store/",
    "contrib/alerts/alert_conditions.py",
    "contrib/alerts/alert_rows.py",
    "contrib/alerts/alerted.py",
    "contrib/console/bench_command.py",
    "contrib/console/job_searches.py",
    "contrib/console/saved_views.py",
    "contrib/http/token_rows.py",
    "contrib/privacy/erase_chunk.py",
    "contrib/privacy/erasure_rows.py",
    "contrib/remote/endpoint_rows.py",
    "contrib/remote/remote_workers.py",
    *(f"contrib/schedules/{name}_" for name in ("due", "firing", "schedule")),
    "contrib/transfer/dumping.py",
    "contrib/transfer/moving_jobs.py",
)


def texts_of(module: ModuleType) -> dict[str, str]:
    """Its constant texts by name, those of its tables of chunked work included."""
    texts = {}
    for name, value in vars(module).items():
        if isinstance(value, WorkTable):
            for part, text in vars(value).items():
                texts[f"{name}.{part}"] = text
        else:
            has_slot = isinstance(value, str) and "{on_failure}" in value
            texts[name] = composed(value) if has_slot and name[0] != "_" else value
    return {name: text for name, text in texts.items() if isinstance(text, str)}
