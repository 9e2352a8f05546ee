"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import psutil

from benchmarks.environment import ROOT
from benchmarks.machine import machine, versions
from benchmarks.page import page, tables
from benchmarks.presence import left_out
from benchmarks.processes import Failed
from benchmarks.profiler import OPTIONS, SCALE, Profiler, version_with_statements
from benchmarks.questions import QUESTIONS
from benchmarks.questions.base import Question
from benchmarks.results import Results
from benchmarks.runner import Runner
from benchmarks.server import VERSION, Busy, Postgres, exclusive_folder, running
from benchmarks.site import QUICK, Site
from benchmarks.systems import OURS
from testproject.demo.processes import Stopped, stop_at_signals

RESULTS: Final = ROOT / "benchmarks" / "results" / "run.json"
PAGE: Final = ROOT / "docs" / "explanation" / "benchmarks.md"
INTERRUPTED: Final = 130


def main(arguments: list[str]) -> int:
    """Do what the command line asks for; returns the exit code."""
    options = _options(arguments)
    stop_at_signals()
    try:
        if options.profile:
            _profile(options)
            return 0
        results = Results.read(options.read) if options.read else _run(options)
    except Stopped:
        print("Stopped.", flush=True)
        return INTERRUPTED
    except (Busy, Failed, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        end_what_is_left()
    print(tables(results))
    for name, lack in results.left_out.items():
        print(f"Left out: {name}: {lack}", file=sys.stderr)
    for trial in results.failed:
        print(f"Failed: {trial}", file=sys.stderr)
    if options.page and not _write_page(results):
        return 1
    return 1 if results.failed else 0


def _write_page(results: Results) -> bool:
    """Write it, unless the run was not whole; returns whether it was.

    The page names trials of others that failed.
    """
    ours = [trial for trial in results.failed if OURS.name in trial]
    if results.quick or ours or len(results.finished) < len(QUESTIONS):
        print(
            "The page needs a whole run in which none of ours failed.", file=sys.stderr
        )
        return False
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    results.write(RESULTS)
    PAGE.write_text(page(results))
    return True


def _run(options: argparse.Namespace) -> Results:
    with exclusive_folder() as folder, running(folder) as server:
        results = _begun(options) if options.resume else _new(options, server)
        questions = [q for q in options.only if q.name not in results.finished]
        site = Site(server, folder, QUICK if options.quick else 1.0)
        try:
            Runner(site, results, _say, options.systems).run(questions)
        finally:  # also what there is of a run that was stopped
            if options.json:
                results.write(options.json)
    return results


def _new(options: argparse.Namespace, server: Postgres) -> Results:
    """Of a run without a trial."""
    return Results(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        machine=machine(),
        versions=versions(),
        left_out=left_out(),
        server=server.settings(),
        quick=options.quick,
        rounds=options.repeat,
    )


def _begun(options: argparse.Namespace) -> Results:
    """Of a run that was stopped."""
    results = Results.read(options.json)
    results.forget_unfinished()
    options.quick, options.repeat = results.quick, results.rounds
    return results


def _profile(options: argparse.Namespace) -> None:
    """Write profiles of some cases beside the JSON."""
    version = version_with_statements()
    server_options = {} if version is None else OPTIONS
    folder_of_profiles = options.json.with_suffix(".profile")
    with (
        exclusive_folder() as folder,
        running(folder, version or VERSION, server_options) as server,
    ):
        site = Site(server, folder, QUICK if options.quick else SCALE)
        has_statements = version is not None
        profiler = Profiler(server, folder_of_profiles, has_statements=has_statements)
        profiler.measure(site, options.profile, options.systems or [OURS.name])
    print(f"Written to {folder_of_profiles}", flush=True)


def _say(line: str) -> None:
    print(line, flush=True)


def end_what_is_left() -> None:
    """No process that was started here outlives us, whatever happened."""
    for process in psutil.Process().children(recursive=True):
        process.kill()


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Run django_jobqueue beside other job queues, on one embedded "
        "PostgreSQL or on Redis.",
        epilog="Questions: " + ", ".join(question.name for question in QUESTIONS),
    )
    parser.add_argument(
        "--only",
        type=_questions,
        default=QUESTIONS,
        metavar="a,b",
        help="ask only these questions",
    )
    parser.add_argument(
        "--systems",
        type=lambda text: text.split(","),
        metavar="a,b",
        help="with these systems alone",
    )
    parser.add_argument(
        "--repeat", type=int, default=3, metavar="N", help="rounds at most (3)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="one round of few jobs, to see it work"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with the run whose results --json has: with its next question",
    )
    parser.add_argument(
        "--read", type=Path, metavar="FILE", help="run nothing; show these results"
    )
    parser.add_argument(
        "--page",
        action="store_true",
        help=f"write {RESULTS.relative_to(ROOT)} and {PAGE.relative_to(ROOT)}",
    )
    parser.add_argument(
        "--profile",
        type=_cases,
        metavar="drain/one",
        help="measure these cases once, ours or those of --systems, and write where "
        "the time goes beside the JSON",
    )
    options = parser.parse_args(arguments)
    if options.profile and not options.json:
        parser.error("--profile needs --json: it writes beside that file")
    if options.resume and not (options.json and options.json.exists()):
        parser.error("--resume needs --json FILE of a run that was stopped")
    if options.quick:
        options.repeat = 1
    in_part = options.quick or options.systems or options.only is not QUESTIONS
    in_part = in_part and not options.resume
    if options.page and not options.read and in_part:
        parser.error("--page needs a whole run: without --quick, --only, --systems")
    return options


def _questions(text: str) -> list[Question]:
    known = {question.name: question for question in QUESTIONS}
    try:
        return [known[name] for name in text.split(",")]
    except KeyError as error:
        raise argparse.ArgumentTypeError(f"there is no question {error}") from None


def _cases(text: str) -> list[str]:
    known = {f"{q.name}/{case.name}" for q in QUESTIONS for case in q.cases}
    for name in text.split(","):
        if name not in known:
            raise argparse.ArgumentTypeError(f"there is no case {name!r}")
    return text.split(",")
