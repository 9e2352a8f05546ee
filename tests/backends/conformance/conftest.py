"""Collected by ``make conformance`` alone: Django's tests leave job types behind."""

from __future__ import annotations

import os

collect_ignore = [] if os.environ.get("JOBQUEUE_CONFORMANCE") else ["test_django.py"]
