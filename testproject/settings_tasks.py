"""The shop with Django's tasks: what there is to say beside ``testproject.settings``.

``make demo DEMO_ARGS=--tasks`` uses it.
"""

from __future__ import annotations

from testproject.settings import *  # noqa: F403

SHOP_TASKS = True
TASKS = {
    "default": {
        "BACKEND": "django_jobqueue.backends.JobQueueBackend",
        "QUEUES": ["default", "mail", "webhooks", "images"],
        "OPTIONS": {"max_attempts": 5},  # as jobs that do not say; tasks have one
    }
}
