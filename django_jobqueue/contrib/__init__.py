"""Rooms beside the core, which imports none of them."""
