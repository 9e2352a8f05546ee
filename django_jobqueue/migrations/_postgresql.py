"""What our migrations have in common: on other databases they change nothing.

A project whose tests run on SQLite, with ``JOBQUEUE["MODE"]`` ``immediate``, migrates
without our tables.
"""

from __future__ import annotations

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState


class Migration(migrations.Migration):
    """A migration that touches the database only if that is PostgreSQL."""

    def apply(
        self,
        project_state: ProjectState,
        schema_editor: BaseDatabaseSchemaEditor,
        collect_sql: bool = False,
    ) -> ProjectState:
        """Apply it; elsewhere only to the state."""
        if schema_editor.connection.vendor == "postgresql":
            return super().apply(project_state, schema_editor, collect_sql)
        return self.mutate_state(project_state, preserve=False)

    def unapply(
        self,
        project_state: ProjectState,
        schema_editor: BaseDatabaseSchemaEditor,
        collect_sql: bool = False,
    ) -> ProjectState:
        """Undo it; elsewhere there is nothing to undo."""
        if schema_editor.connection.vendor == "postgresql":
            return super().unapply(project_state, schema_editor, collect_sql)
        return project_state
