"""Queued and archived jobs: their lists, their pages, and what is done with them."""
