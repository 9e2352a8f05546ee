"""Every statement that changes a job: one verb, one file, SQL above the function that
binds it.

A function takes a ``Database``: the caller's own Django connection, so that an enqueue
joins its transaction, or a connection of the machinery's own. It returns named tuples
and dataclasses.
"""
