"""Finds out whether a project has made an index on the data of jobs."""

from __future__ import annotations

from typing import Final

from django_jobqueue.search.selection import Table
from django_jobqueue.store.connection import Database
from django_jobqueue.store.selection import TABLES

# A whole one that can be used; a partial one serves only some of the rows.
HAS_DATA_INDEX: Final = """
SELECT EXISTS (
    SELECT FROM pg_index AS index
      JOIN pg_class AS class ON class.oid = index.indexrelid
      JOIN pg_am AS method ON method.oid = class.relam
      JOIN pg_attribute AS attribute
        ON attribute.attrelid = index.indrelid AND attribute.attnum = index.indkey[0]
     WHERE index.indrelid = to_regclass(%(table)s) AND index.indisvalid
       AND index.indpred IS NULL AND method.amname = 'gin'
       AND attribute.attname = 'data')
"""


def has_data_index(db: Database, table: Table) -> bool:
    """True if a GIN index finds jobs of this table by their data."""
    ((index_exists,),) = db.fetch(HAS_DATA_INDEX, {"table": TABLES[table]})
    return bool(index_exists)
