"""Restores the tenant that was active when a job was enqueued."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django_jobqueue.domain.context import Context
from django_jobqueue.exceptions import Fail


def in_tenant(get_result: Callable[[Context], Any]) -> Callable[[Context], Any]:
    """Run the handler in the schema that the job's metadata name as ``tenant``, by
    django-tenants. A job whose schema does not exist fails at once: with a search path
    that leads nowhere it would write into the shared tables.

    It is sync, so async handlers run one at a time: they share a connection.
    """

    def run(context: Context) -> Any:
        tenant = context.metadata.get("tenant")
        if tenant is None:
            return get_result(context)
        from django_tenants.utils import schema_context, schema_exists

        if not (isinstance(tenant, str) and schema_exists(tenant)):
            raise Fail(f"The tenant {tenant!r} has no schema.")
        with schema_context(tenant):
            return get_result(context)

    return run
