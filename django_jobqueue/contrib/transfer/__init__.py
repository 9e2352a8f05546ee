"""Waiting jobs go to another database: as JSON lines, or at once."""
