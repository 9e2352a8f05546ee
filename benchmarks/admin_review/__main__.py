"""``python -m benchmarks.admin_review``."""

from __future__ import annotations

import sys

from benchmarks.admin_review.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
