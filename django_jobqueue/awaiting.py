"""Waits for jobs to be over, told by the database instead of asking it again."""

from __future__ import annotations

from uuid import UUID


def wait(id: UUID | str, timeout: float | None = None) -> None: ...


async def await_(id: UUID | str, timeout: float | None = None) -> None: ...
