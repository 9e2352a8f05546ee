"""Tokens of the HTTP API: which there are, making and revoking them."""
