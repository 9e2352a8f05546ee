"""Maintenance of a host: renews leases, rescues, expires, fires schedules, prunes."""
