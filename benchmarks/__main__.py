"""``python -m benchmarks``: us beside the peers on one embedded PostgreSQL."""

from __future__ import annotations

import sys

from benchmarks.environment import enter

if __name__ == "__main__":
    enter(sys.argv[1:])

    # From here on in .venv-bench.
    from benchmarks.command import main

    sys.exit(main(sys.argv[1:]))
