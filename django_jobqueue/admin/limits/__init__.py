"""Limits by key: their keys, and overrides."""
