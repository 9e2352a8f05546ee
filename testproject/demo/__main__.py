"""The command line of the demo."""

from __future__ import annotations

import argparse
import os
import sys

import django
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError

from testproject.demo.browser import Refused
from testproject.demo.database import database, remove_servers
from testproject.demo.processes import FILES, ROOT, Died, Stopped, stop_at_signals
from testproject.demo.web import HOST, free_port

INTERRUPTED = 130


def main() -> int:
    """Run what the command line asks for; returns the exit code."""
    options = _options()
    if options.clean:
        remove_servers(FILES, ROOT / ".cache")
        return 0
    stop_at_signals()
    try:
        with database(FILES) as where:
            print(f"Using {where}", flush=True)
            return _run(options)
    except Stopped:
        print("Stopped.", flush=True)
        return INTERRUPTED if options.once else 0
    except (Died, Refused, ImproperlyConfigured) as error:
        print(error, file=sys.stderr)
        return 1
    except OperationalError as error:
        print(f"The database cannot be used: {error}", file=sys.stderr)
        return 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m testproject.demo")
    parser.add_argument("--port", type=_port, default=8000, help="of the shop (8000)")
    parser.add_argument(
        "--orders-every",
        type=float,
        default=15,
        metavar="SECONDS",
        help="place an order now and then; 0 places none (15)",
    )
    parser.add_argument(
        "--tasks", action="store_true", help="with Django's @task in place of @job"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--once", action="store_true", help="do all of it once, check it, and end"
    )
    what.add_argument(
        "--clean",
        action="store_true",
        help="stop embedded servers that still run, and remove their data",
    )
    return parser.parse_args()


def _port(text: str) -> int:
    if text.isdecimal() and 0 < int(text) < 65_536:
        return int(text)
    raise argparse.ArgumentTypeError("it must be a number from 1 to 65535")


def _run(options: argparse.Namespace) -> int:
    port = free_port(options.port)
    if port != options.port:
        print(f"Port {options.port} is taken; using {port}", flush=True)
    os.environ["SHOP_URL"] = f"http://{HOST}:{port}"
    os.environ["no_proxy"] = HOST
    os.environ["DJANGO_SETTINGS_MODULE"] = (
        "testproject.settings_tasks" if options.tasks else "testproject.settings"
    )
    django.setup()

    # These import models, which need Django to be set up.
    from testproject.demo import live, once

    if options.once:
        return once.run()
    live.run(options.orders_every)
    return 0


if __name__ == "__main__":
    sys.exit(main())
