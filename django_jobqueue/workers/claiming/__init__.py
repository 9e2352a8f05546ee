"""Decides which jobs a worker claims, how many, and when."""
