"""Brings schedules and calls of other job queues here."""
