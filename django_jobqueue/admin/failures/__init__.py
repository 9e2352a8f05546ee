"""Failure groups: their list, their page, decisions, and actions on their jobs."""
