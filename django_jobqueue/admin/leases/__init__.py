"""Leases by name: who holds which, and taking one away."""
