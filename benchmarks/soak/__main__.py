"""``python -m benchmarks.soak``."""

from __future__ import annotations

import sys

from benchmarks.environment import enter

if __name__ == "__main__":
    enter(sys.argv[1:], "benchmarks.soak")

    # From here on in .venv-bench.
    from benchmarks.soak.command import main

    sys.exit(main(sys.argv[1:]))
