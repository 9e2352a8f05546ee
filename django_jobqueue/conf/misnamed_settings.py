"""The system check that finds a dict of our settings under another name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Warning

from django_jobqueue.conf import Conf


def check_name(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """W013: a dict of our settings under another name, which nobody reads."""
    return [
        Warning(
            f"The setting {name} looks like those of the job queue, which reads "
            "JOBQUEUE alone.",
            hint=f"Rename {name} to JOBQUEUE.",
            id="jobqueue.W013",
        )
        for name in dir(settings)
        if _is_like_ours(name) and _is_like_jobqueue(getattr(settings, name))
    ]


def _is_like_ours(name: str) -> bool:
    if name == "JOBQUEUE" or not name.isupper():
        return False
    letters = name.replace("_", "").removeprefix("DJANGO")
    return bool(get_close_matches(letters, ["JOBQUEUE"], cutoff=0.85))


def _is_like_jobqueue(value: object) -> bool:
    return isinstance(value, dict) and any(key in Conf.settings for key in value)
