"""The command line of the soak."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.command import INTERRUPTED, end_what_is_left
from benchmarks.kept import keep
from benchmarks.processes import Failed
from benchmarks.server import Busy, exclusive_folder, running
from benchmarks.site import Site
from benchmarks.soak.page import PICTURE, RESULTS, picture, summary
from benchmarks.soak.run import soak
from testproject.demo.processes import Stopped, stop_at_signals


def main(arguments: list[str]) -> int:
    """Do what the command line asks for; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.soak",
        description="Run jobs of all kinds at once, and see whether all stays flat.",
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="(60)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the samples")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw them")
    parser.add_argument(
        "--page", action="store_true", help="write both where the docs have them"
    )
    options = parser.parse_args(arguments)
    stop_at_signals()
    try:
        with exclusive_folder() as folder, running(folder) as server:
            found = soak(Site(server, folder), options.minutes)
    except Stopped:
        print("Stopped.", flush=True)
        return INTERRUPTED
    except (Busy, Failed, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        end_what_is_left()
    print(summary(found))
    for path, write in ((RESULTS, options.page), (options.json, options.json)):
        if write:
            keep(path, found)
    for path, write in ((PICTURE, options.page), (options.svg, options.svg)):
        if write:
            path.write_text(picture(found))
    return 0
