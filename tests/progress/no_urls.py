"""Addresses of a project that forgot those of the job queue."""

from __future__ import annotations

urlpatterns: list[object] = []
