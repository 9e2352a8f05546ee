"""Fixtures of tests that kill."""

from tests.support.doomed_server import doomed as doomed
