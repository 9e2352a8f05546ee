"""Measurements of the queue: ``python -m benchmarks``, and single scripts.

The README beside this file is the index. Nothing here asserts a time.
"""
