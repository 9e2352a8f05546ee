"""What is shown of a soak: a picture, and whether everything stayed flat."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.environment import ROOT
from benchmarks.figures import number
from benchmarks.kept import place_of, section_of
from benchmarks.soak.plot import Panel, svg
from benchmarks.tables import line, prose

RESULTS: Final = place_of("soak")
PICTURE: Final = ROOT / "docs" / "explanation" / "soak.svg"
FLAT: Final = {
    "starts_per_s": "jobs/s",
    "short_p50_ms": "short jobs, p50 ms",
    "short_p99_ms": "short jobs, p99 ms",
    "scheduled_p99_ms": "scheduled jobs, p99 ms late",
    "keyed_p99_ms": "jobs with a key, p99 ms",
    "workers_mb": "PSS of the workers, MiB",
    "others_mb": "PSS of supervisor and maintenance, MiB",
    "queue_mb": "table of the queue, MiB",
    "archive_mb": "table of the archive, MiB",
    "cpu": "CPU of workers and server, cores",
}


def picture(found: Mapping[str, Any]) -> str:
    """The samples, drawn."""

    def curve(key: str) -> list[tuple[float, float]]:
        samples = found["samples"]
        return [(one["minutes"], one[key]) for one in samples if key in one]

    return svg(
        [
            Panel("Starts of handlers, per second", {"": curve("starts_per_s")}),
            Panel(
                "From due to started, ms",
                {"short, p50": curve("short_p50_ms")}
                | {"short, p99": curve("short_p99_ms")}
                | {"scheduled, p99": curve("scheduled_p99_ms")}
                | {"with a key, p99": curve("keyed_p99_ms")},
            ),
            Panel("Jobs waiting and running", {"": curve("waiting")}),
            Panel(
                "Memory (PSS), MiB",
                {"2 workers": curve("workers_mb")}
                | {"supervisor and maintenance": curve("others_mb")},
            ),
            Panel(
                "Tables with their indexes, MiB",
                {"queue": curve("queue_mb"), "archive": curve("archive_mb")},
            ),
            Panel("CPU of workers and server, cores", {"": curve("cpu")}),
        ]
    )


def summary(found: Mapping[str, Any]) -> str:
    """The second quarter of the time beside the last one, as a table."""
    samples = found["samples"]
    quarter = max(1, len(samples) // 4)
    early, late = samples[quarter : 2 * quarter] or samples, samples[-quarter:]
    rows = [
        line(("median of", "second quarter", "last quarter", "ratio")),
        line(("---", "---:", "---:", "---:")),
    ]
    for key, title in FLAT.items():
        if key not in samples[0]:  # of a soak from before it was measured
            continue
        before, after = (
            statistics.median(sample[key] for sample in part) for part in (early, late)
        )
        ratio = number(after / before) if before else "–"
        rows.append(line((title, number(before), number(after), ratio)))
    return "\n".join(rows)


def section(path: Path = RESULTS) -> str:
    """What the page says of the last soak."""
    return section_of(path, _in_words)


def _in_words(found: Mapping[str, Any]) -> str:
    minutes = found["samples"][-1]["minutes"]
    jobs = ", ".join(f"{count:,} {name}" for name, count in found["jobs"].items())
    told = (
        f"{minutes:.0f} minutes on {found['date']}: {jobs}. Every job was run as often "
        "as it should be."
    )
    return (
        f"![Throughput, latency, memory, tables and CPU over time]({PICTURE.name})\n\n"
        f"{prose(told)}\n\n{summary(found)}"
    )
