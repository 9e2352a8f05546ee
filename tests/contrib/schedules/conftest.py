"""Fixtures of the pages and of the overview."""

from tests.admin.conftest import anna, fresh_figures, log_in, scene, viewer
from tests.stats.conftest import no_schedules

__all__ = [
    "anna",
    "fresh_figures",
    "log_in",
    "no_schedules",
    "scene",
    "viewer",
]  # fixtures
