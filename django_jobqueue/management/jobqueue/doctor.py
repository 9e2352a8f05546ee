"""``jobqueue doctor``: examines settings, server, tables, workers and jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from django.core import checks
from django.core.management.base import CommandError

from django_jobqueue.conf import conf
from django_jobqueue.logs import one_line
from django_jobqueue.management.jobqueue.console import Console, counted
from django_jobqueue.management.jobqueue.subcommand import Options, Subcommand
from django_jobqueue.stats.diagnosis import diagnose
from django_jobqueue.stats.findings import Finding, Level, ok
from django_jobqueue.verbs.columns import Column, Listing, only_json
from django_jobqueue.verbs.declarations import flag

OURS: Final = "jobqueue."
FINDINGS: Final = Listing(
    (
        Column("id"),
        Column("level", note="ok, note or problem"),
        *only_json("text advice"),
    )
)


class Doctor(Subcommand):
    name = "doctor"
    summary = "Examine settings, server, tables and workers."
    description = """\
Examine the installation: the settings, by the system checks; the server and the
role; the tables; handlers, workers and hosts; and what needs attention now.
Each check is ok, a note, or a problem, with advice.

  jobqueue doctor
  jobqueue doctor --all

It changes nothing. The exit code is 1 if there is a problem."""
    json = f"""a list of {FINDINGS.keys}; those of system checks have their ids, such as
    jobqueue.W003."""
    arguments = (
        flag("all", "Print each check that is ok, too, not only their number."),
    )

    def run(self, console: Console, options: Options) -> None:
        findings = [*_settings(), *diagnose()]
        if console.is_json:
            console.rows(FINDINGS, findings)
        else:
            _print(console, findings, options["all"])
        bad = sum(one.level is Level.PROBLEM for one in findings)
        if bad:
            raise CommandError(f"{counted(bad, 'problem')} found.")


def _settings() -> Iterator[Finding]:
    """Run the system checks, with those for deployment and of the database."""
    alias = conf.database
    messages = [
        *checks.run_checks(tags=["jobqueue"], include_deployment_checks=True),
        *checks.run_checks(tags=[checks.Tags.database], databases=[alias]),
    ]
    ours = [one for one in messages if (one.id or "").startswith(OURS)]
    for one in ours:
        level = Level.PROBLEM if one.level >= checks.ERROR else Level.NOTE
        if not one.is_silenced():
            yield Finding(one.id or "", level, str(one.msg), str(one.hint or ""))
    if not ours:
        yield ok("system-checks", "The system checks find nothing.")


def _print(console: Console, findings: list[Finding], is_all: bool) -> None:
    styles = {
        Level.OK: console.style.SUCCESS,
        Level.NOTE: console.style.WARNING,
        Level.PROBLEM: console.style.ERROR,
    }
    width = max(len(level) for level in Level)
    for one in findings:
        if one.level is Level.OK and not is_all:
            continue
        level = styles[one.level](f"{one.level:{width}}")
        console.print(f"{level}  {one.id}: {one_line(one.text)}")
        if one.advice:
            console.print(f"{'':{width}}  {one_line(one.advice)}")
    fine = sum(one.level is Level.OK for one in findings)
    console.info(f"{counted(fine, 'check')} passed.")
