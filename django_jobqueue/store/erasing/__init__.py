"""Finds a personal value in all tables, and erases it."""
