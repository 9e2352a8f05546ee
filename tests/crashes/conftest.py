"""Fixtures of tests that kill."""

from tests.embedded.programs import program as program
from tests.support.doomed_server import doomed as doomed
