"""An hour of all kinds of jobs at once: does everything stay flat?

    python -m benchmarks.soak --minutes 60 --page

Memory, the size of tables, latency and throughput are looked at every few seconds and
drawn. At the end it is checked that every job was run as often as it should be. This is
also the Django app with the handlers.
"""
