"""Settings of a host that ``feature_costs`` measures: those of the tests, and the
feature that the environment names."""

from __future__ import annotations

import os

from django.apps import AppConfig

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS, JOBQUEUE

FEATURE = os.environ["BENCHMARKED_FEATURE"]


class Observed(AppConfig):
    """Registers the observers of the feature, if it has any."""

    name = "benchmarks"

    def ready(self) -> None:
        """Before the first fork."""
        from benchmarks.observed_jobs import prepared
        from django_jobqueue import observers

        observers.registered = prepared(FEATURE)


INSTALLED_APPS = [*INSTALLED_APPS, "benchmarks.feature_settings.Observed"]
if FEATURE == "alerts":
    channel = {"to": "mail", "addresses": ["ops@shop.example"]}
    JOBQUEUE = {**JOBQUEUE, "ALERTS": [channel]}
