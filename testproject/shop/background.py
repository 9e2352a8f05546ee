"""What the shop enqueues: ``background.send_invoice`` and so on.

``settings.SHOP_TASKS`` decides which: the tasks of ``tasks``, which are declared with
Django's ``@task``, or the handlers of ``jobs``.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from django.conf import settings


def __getattr__(name: str) -> Any:
    return getattr(_declared(), name)


def job_type(name: str) -> str:
    """The name of the job type of one of them."""
    handler = getattr(_declared(), name)
    return str(handler.module_path if settings.SHOP_TASKS else handler.name)


def _declared() -> ModuleType:
    chosen = "tasks" if settings.SHOP_TASKS else "jobs"
    return import_module(f"testproject.shop.{chosen}")
