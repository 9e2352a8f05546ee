"""Figures for operators: the state of the whole job queue, and its problems.

The command ``jobqueue status`` and the admin's overview show the same figures.
"""
