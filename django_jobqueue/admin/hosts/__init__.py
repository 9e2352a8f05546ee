"""Hosts: each ``runworkers``, its plan, and requests to it."""
