"""``jobqueue completion``: what the Tab key offers."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from django_jobqueue.management.commands.jobqueue import SUBCOMMANDS
from tests.commands.conftest import jobqueue, refusal

TAB = """
{script}
_django_completion() {{ COMPREPLY=($(compgen -W "migrate check" -- "$2")); }}
COMP_WORDS=({words} "{current}")
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_jobqueue manage.py "{current}" ""
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def offered(words: str, current: str) -> set[str]:
    script = jobqueue("completion bash").out
    text = TAB.format(script=script, words=words, current=current)
    ran = subprocess.run(["bash", "-c", text], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    return set(ran.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "current", "wanted"),
    [
        ("manage.py jobqueue", "", set(SUBCOMMANDS)),
        ("manage.py jobqueue", "re", {"release", "replay", "reschedule", "resume"}),
        ("manage.py jobqueue operations", "st", {"stop"}),
        ("manage.py jobqueue operations stop", "--l", {"--limit"}),
        ("manage.py jobqueue cancel", "--w", {"--where"}),
        ("manage.py jobqueue --database x cancel", "--w", set()),
        ("manage.py jobqueue completion", "", {"bash", "zsh", "fish"}),
        ("manage.py jobqueue xyzzy", "", set()),
        ("manage.py", "jo", {"jobqueue"}),
        ("manage.py", "mi", {"migrate"}),
    ],
)
def test_bash_offers_subcommands_verbs_and_options(
    words: str, current: str, wanted: set[str]
) -> None:
    there = offered(words, current)
    assert {word for word in there if not word.startswith("--") or current} == wanted


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_every_subcommand_and_nothing_is_hidden(shell: str) -> None:
    text = jobqueue(f"completion {shell}").out
    assert set(SUBCOMMANDS) <= set(re.split(r"[\s'\"=]+", text))
    assert "--where" in text
    assert "--pythonpath" not in text


def test_another_shell_is_answered_with_those_that_there_are() -> None:
    assert "There is one for each of bash, zsh, fish" in refusal("completion tcsh")
