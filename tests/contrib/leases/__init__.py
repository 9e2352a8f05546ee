"""Tests of leases by name."""
