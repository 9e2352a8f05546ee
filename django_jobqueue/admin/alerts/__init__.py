"""Alerts: what fires and what is resolved, and what the channels answered."""
