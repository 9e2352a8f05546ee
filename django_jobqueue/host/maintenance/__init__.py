"""Maintenance of a host: renews leases, rescues, expires, prunes."""
