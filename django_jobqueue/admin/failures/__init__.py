"""Failure groups: their list, their page, and what people decide."""
