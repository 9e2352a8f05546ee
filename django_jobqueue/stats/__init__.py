"""What operators look at: the state of the whole job queue, and what is wrong with it.

The command ``jobqueue status`` and the admin's overview show the same figures.
"""
