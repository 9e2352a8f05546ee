"""The page about the commands: what it types can be typed."""

from __future__ import annotations

import re
import shlex

import pytest
from django.core.management import load_command_class

from django_jobqueue.management.commands.jobqueue import SUBCOMMANDS
from tests.commands.conftest import jobqueue, parser
from tests.support.commands import ROOT

PAGE = (ROOT / "docs" / "reference" / "commands.md").read_text()
TYPED = re.findall(r"^\$ python manage\.py (.*)$", PAGE, re.MULTILINE)
WRONG = {"jobqueue stats"}  # shown for its error


def words_of(line: str) -> list[str]:
    """The command's words, without what the shell does with its streams."""
    words = shlex.split(line)
    ends = [index for index, word in enumerate(words) if word in ("|", "<", ">")]
    return words[: ends[0]] if ends else words


def test_every_command_line_is_understood() -> None:
    runworkers = load_command_class("django_jobqueue", "runworkers")
    parsers = {
        "jobqueue": parser(),
        "runworkers": runworkers.create_parser("manage.py", "runworkers"),
    }
    assert len(TYPED) > 50
    for line in set(TYPED) - WRONG:
        name, *words = words_of(line)
        assert parsers[name].parse_args(words), line


def test_every_command_is_shown_with_its_help_and_an_example() -> None:
    for name in ("runworkers", *(f"jobqueue {name}" for name in SUBCOMMANDS)):
        assert f":::{{jobqueue-help}} {name}\n" in PAGE
        assert any(line.startswith(name) for line in TYPED), name


@pytest.mark.django_db
def test_the_roles_that_the_page_shows_are_those_that_are_made() -> None:
    shown = PAGE.partition("$ python manage.py jobqueue roles\n")[2]
    assert shown.partition("```")[0] == jobqueue("roles").out
