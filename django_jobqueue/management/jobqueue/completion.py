"""``jobqueue completion``: subcommands and options for the Tab key of a shell."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from django.core.management.base import CommandError

from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.parsers import Parser
from django_jobqueue.management.jobqueue.subcommand import Options, Subcommand
from django_jobqueue.text.suggestions import did_you_mean
from django_jobqueue.verbs.declarations import Argument

SHELLS: Final = ("bash", "zsh", "fish")

# Of Django's own completion of manage.py nothing is lost: it is asked for the rest.
BASH: Final = """\
_jobqueue() {{
  local i at=0
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ ${{COMP_WORDS[i]}} == jobqueue ]] && at=$i && break
  done
  if ((!at)); then
    declare -F _django_completion >/dev/null && _django_completion "$@"
    ((${{#COMPREPLY[@]}})) || COMPREPLY=($(compgen -W jobqueue -- "$2"))
    return
  fi
  local words="{names}"
  if ((COMP_CWORD > at + 1)); then
    case ${{COMP_WORDS[at + 1]}} in
{cases}
    *) words= ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$2"))
}}
complete -o default -F _jobqueue manage.py ./manage.py django-admin
"""
CASE: Final = '    {name}) words="{words}" ;;'
ZSH: Final = "autoload -U +X bashcompinit && bashcompinit\n"
FISH_AT: Final = "__fish_seen_subcommand_from jobqueue"
FISH_COMMANDS: Final = ("manage.py", "./manage.py", "django-admin")


class Completion(Subcommand):
    name = "completion"
    reads_jobs = False
    verbs = SHELLS
    summary = "Print a script that completes subcommands and options."
    description = """\
Print a script for the Tab key of bash, zsh or fish. It completes subcommands,
their verbs and options after manage.py jobqueue; job types and queues are not
completed, since that would start Django at each key.

  jobqueue completion bash >> ~/.bashrc
  jobqueue completion zsh >> ~/.zshrc
  jobqueue completion fish > ~/.config/fish/completions/manage.py.fish"""

    arguments = (Argument("shell", f"{', '.join(SHELLS)}.", "SHELL", words="1"),)

    def run(self, console: Console, options: Options) -> None:
        if options["shell"] not in SHELLS:
            hint = did_you_mean(options["shell"], SHELLS)
            shells = ", ".join(SHELLS)
            raise CommandError(
                f"There is no script for {options['shell']!r}.{hint} There is one for "
                f"each of {shells}."
            )
        words = {name: _words(parser) for name, parser in self.parser.siblings.items()}
        script = _fish if options["shell"] == "fish" else _bash
        text = script(words)
        console.print(ZSH + text if options["shell"] == "zsh" else text, ending="")


def _words(parser: Parser) -> list[str]:
    """Its verbs and long options, but for those that its help hides."""
    words = list(parser.verbs)
    for action in parser._actions:
        if action.option_strings:
            long = (flag for flag in action.option_strings if flag.startswith("--"))
            words += [] if action.help == argparse.SUPPRESS else islice(long, 1)
    return words


def _bash(words: Mapping[str, list[str]]) -> str:
    cases = [CASE.format(name=name, words=" ".join(of)) for name, of in words.items()]
    return BASH.format(names=" ".join(words), cases="\n".join(cases))


def _fish(words: Mapping[str, list[str]]) -> str:
    return "".join(f"{line}\n" for line in _fish_lines(words))


def _fish_lines(words: Mapping[str, list[str]]) -> Iterator[str]:
    for command in FISH_COMMANDS:
        start = f"complete -c {command}"
        yield f"{start} -f -n 'not {FISH_AT}' -a jobqueue"
        names = " ".join(words)
        none = f"{FISH_AT}; and not __fish_seen_subcommand_from {names}"
        yield f"{start} -f -n '{none}' -a '{names}'"
        for name, of in words.items():
            after = f"{FISH_AT}; and __fish_seen_subcommand_from {name}"
            yield f"{start} -n '{after}' -a '{' '.join(of)}'"
