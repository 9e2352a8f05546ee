"""What may stand around handlers: name these in ``JOBQUEUE["MIDDLEWARE"]`` or in
``@job(middleware=…)``.

Middleware has Django's own shape. A factory is given ``get_result`` and returns a
function of the context, which returns what the handler shall have returned.
"""

from django_jobqueue.middleware.handler_context import in_tenant, localize, log_context
from django_jobqueue.middleware.queries import count_queries

__all__ = ["count_queries", "in_tenant", "localize", "log_context"]
