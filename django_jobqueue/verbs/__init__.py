"""Verbs of operators and columns of lists, each declared once for every surface."""
