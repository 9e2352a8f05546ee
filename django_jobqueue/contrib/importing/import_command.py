"""``jobqueue import``: bring schedules and calls of other job queues here."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from django.core.management.base import CommandError

from django_jobqueue.contrib.importing.as_code import as_code
from django_jobqueue.contrib.importing.celery_scan import scan
from django_jobqueue.contrib.importing.import_plan import (
    NEW,
    SOURCES,
    Becomes,
    PlannedImport,
    carry_out,
    plan,
)
from django_jobqueue.contrib.schedules.schedule_states import rule_text
from django_jobqueue.domain.schedule_rules import Cron
from django_jobqueue.logs import one_line
from django_jobqueue.management.jobqueue.console import Console, counted
from django_jobqueue.management.jobqueue.subcommand import (
    FORMAT,
    YES,
    Options,
    Subcommand,
    by,
)
from django_jobqueue.text.suggestions import did_you_mean
from django_jobqueue.verbs.columns import Column, Listing, Type, local
from django_jobqueue.verbs.declarations import Argument, flag

CELERY: Final = "celery"
KNOWN: Final = (*SOURCES, CELERY)
# Options that only the tables, or only the code, have.
OF_TABLES: Final = ("map", "as_code", "yes", "dry_run", "disable_there")
OF_CODE: Final = ("scan", "format")


def _when(item: PlannedImport) -> str:
    one = item.theirs
    if moment := item.run_at or one.run_at:
        return f"once, {local(moment)}"
    if one.rule is None:
        return ""
    text = rule_text(one.rule)
    return f"{text} ({one.time_zone})" if isinstance(one.rule, Cron) else text


PLANNED: Final = Listing(
    (
        Column("", "Schedule", value="name", breaks=True),
        Column("", "Their task", Type(str), "theirs.task", breaks=True),
        Column("", "Job type", Type(str), "job_type", breaks=True),
        Column("", "When", Type(str), _when, breaks=True),
        Column("", "Becomes", value="becomes"),
    )
)


class Import(Subcommand):
    name = "import"
    summary = "Import schedules of other queues; scan Celery code."
    description = """\
Import the schedules that another job queue has in this database, or say what to
write instead of Celery's calls:

  celery-beat          the tables of django-celery-beat
  django-q2            the table of Django-Q2's schedules
  celery --scan PATH   Python code, which is read and never imported

Without --yes it only shows what it would do. Existing schedules stay as they
are, so you can repeat the command. The other queue need not be installed.

  jobqueue import celery-beat --map shop.tasks.nightly=shop.nightly_report
  jobqueue import celery-beat --yes --disable-there
  jobqueue import django-q2 --as code
  jobqueue import celery --scan src"""
    json = "a list of {path, line, found, name, advice}."
    arguments = (
        Argument(
            "source", f"One of {', '.join(KNOWN)}; see above.", "SOURCE", words="1"
        ),
        Argument(
            "map",
            "The job type for their task of this name; can be repeated. Default: the "
            "job type of the same name, or the only one whose function has it.",
            "TASK=TYPE",
            is_list=True,
        ),
        Argument(
            "as_code",
            "Print Python for jobs.py instead of a table; write nothing.",
            choices=("code",),
            flag="--as",
        ),
        flag(
            "dry_run",
            "Change nothing; show what would be done. The default without --yes.",
        ),
        YES._replace(help="Write the schedules, all or none."),
        flag(
            "disable_there",
            ("Turn off the imported ones in the other queue, in the same transaction."),
        ),
        Argument("scan", "A Python file, or a folder of them.", "PATH"),
        FORMAT._replace(help="Default: text.", default=None),
    )

    def run(self, console: Console, options: Options) -> None:
        source = options["source"]
        if source not in KNOWN:
            raise CommandError(
                f"There is no source {source!r}.{did_you_mean(source, KNOWN)} The "
                f"sources are {', '.join(KNOWN)}."
            )
        others = OF_TABLES if source == CELERY else OF_CODE
        for name in others:
            if options[name]:
                flag = "--as" if name == "as_code" else f"--{name.replace('_', '-')}"
                raise CommandError(f"{flag} is not for {source}.")
        if source == CELERY:
            _scan(console, options["scan"])
        else:
            _import(console, source, options)


def _scan(console: Console, path: str | None) -> None:
    if path is None:
        raise CommandError(
            "Name the code: --scan PATH. Schedules in tables are those of celery-beat."
        )
    if not Path(path).exists():
        raise CommandError(f"--scan: there is no file or folder {path!r}.")
    findings = scan(Path(path))
    if console.is_json:
        console.json([one.as_json() for one in findings], ascii=True)
        return
    for one in findings:
        name = f" {one.name}" if one.name else ""
        console.print(one_line(f"{one.path}:{one.line}: {one.found}{name}"))
        for sentence in one.advice:
            console.print(one_line(f"    {sentence}"))
    files = len({one.path for one in findings})
    console.info(
        f"{counted(len(findings), 'place')} in {counted(files, 'file')}."
        if findings
        else "No Celery was found."
    )


def _import(console: Console, name: str, options: Options) -> None:
    source = SOURCES[name]
    planned = plan(source, _job_types(options["map"] or []))
    if options["as_code"]:
        console.print(as_code(planned))
        return
    if planned:
        _list(console, planned)
    writes = options["yes"] and not options["dry_run"]
    disabled = 0
    if writes:
        disables = options["disable_there"]
        disabled = carry_out(planned, source, disables=disables, by=by())
    elif options["disable_there"]:
        there = [i for i in planned if i.becomes is not Becomes.REFUSED]
        disabled = sum(item.theirs.enabled for item in there)
    console.info(_summary(planned, disabled, source.label, writes=writes))


def _job_types(given: list[str]) -> dict[str, str]:
    job_types: dict[str, str] = {}
    for text in given:
        theirs, equals, job_type = text.partition("=")
        if not (theirs and equals and job_type):
            raise CommandError(f"--map: write TASK=TYPE, not {text!r}.")
        if job_types.setdefault(theirs, job_type) != job_type:
            raise CommandError(f"--map: {theirs} is given twice.")
    return job_types


def _list(console: Console, planned: list[PlannedImport]) -> None:
    console.rows(PLANNED, planned)
    for item in planned:
        if item.reason:
            console.print(one_line(f"{item.name} is refused: {item.reason}"))
        notes = item.theirs.notes if item.becomes is not Becomes.THERE else []
        for note in notes:
            console.print(one_line(f"{item.name}: {note}"))


def _summary(
    planned: list[PlannedImport], disabled: int, label: str, *, writes: bool
) -> str:
    """The result of the import, or its preview."""
    new = [item for item in planned if item.becomes in NEW]
    jobs = sum(item.becomes is Becomes.JOB for item in new)
    done = [counted(len(new) - jobs, "schedule")] if len(new) > jobs else []
    done += [counted(jobs, "job")] if jobs else []
    made = " and ".join(done)
    verb = "were" if writes else "would be"
    if made == "1 schedule" or made == "1 job":
        verb = "was" if writes else "would be"
    text = f"{made} {verb} made." if made else "There is nothing to import."
    if disabled:
        verb = verb if made else ("were" if writes else "would be")
        text += f" {disabled} {'was' if writes and disabled == 1 else verb} turned off"
        text += f" in {label}."
    if not writes and (made or disabled):
        text += " Nothing was changed; pass --yes."
    return text
