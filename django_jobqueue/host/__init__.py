"""One host: its workers, and the maintenance that they need. From top to bottom::

    supervisor           the loop of runworkers: signals, forks, ends
    process_health       kills processes that hang or are paused
    children             worker processes, and the maintenance process
    maintenance_child    the maintenance process as the supervisor sees it
    host_orders          what operators ask of the whole host
    control │ child      obeys, fences, replaces, stops │ one forked process
    code_trial           tries new code, and puts it in the place of the old
    maintenance          leases, rescue, expiry, schedules, pruning, the host's row
    restarts │ hangs     when to start again │ who holds the interpreter's lock
    scaling              the way from one plan to another

Two strategies run workers under the same control: ``supervisor`` has a process for
each, ``embedded/embedded_supervisor`` has threads in its own process.
"""
