"""Loops, idleness, identity: the tools that processes and threads share."""
