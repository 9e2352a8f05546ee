"""What people type to find jobs: ``type:send_receipt ran:>20s data.order_id:7``.

The admin's search box and the command line have the same grammar. It is read without a
look at the database; what comes of it is the terms of a selection.
"""

from django_jobqueue.search.errors import SearchError
from django_jobqueue.search.ids import SHORTEST, IdSearch
from django_jobqueue.search.parser import Search, parse

__all__ = ["SHORTEST", "IdSearch", "Search", "SearchError", "parse"]
