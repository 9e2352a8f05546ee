"""Figures for operators: windows, sums by name, what needs attention."""
