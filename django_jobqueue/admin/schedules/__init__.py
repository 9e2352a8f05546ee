"""Schedules: when jobs are enqueued by themselves, and what operators say of it."""
