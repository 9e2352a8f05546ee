"""Which database the jobs are in."""

from __future__ import annotations

from difflib import get_close_matches

from django.db import connections

from django_jobqueue.conf import conf


def alias_problem(alias: object) -> str | None:
    """What is wrong with this alias of a database for jobs, in words that follow it."""
    if not isinstance(alias, str) or alias not in connections.settings:
        near = get_close_matches(str(alias), list(connections.settings), n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        return f"must be an alias of DATABASES, not {alias!r}.{hint}"
    vendor = connections[alias].vendor
    if conf.mode == "queue" and vendor != "postgresql":
        return f"must be a PostgreSQL database; {alias!r} is {vendor}."
    return None
