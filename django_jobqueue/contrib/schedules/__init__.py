"""Schedules: what fires those that the code declares with ``@job(schedule=…)`` and
``handler.at(…)``, and those that operators make."""
