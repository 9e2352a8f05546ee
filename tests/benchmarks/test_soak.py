"""The soak: a short one runs, and what is drawn of it is what was seen."""

from __future__ import annotations

import tempfile
from pathlib import Path
from xml.etree import ElementTree

import psutil
import pytest

from benchmarks.server import running
from benchmarks.site import Site
from benchmarks.soak.page import PICTURE, RESULTS, picture, section, summary
from benchmarks.soak.plot import HEIGHT, Panel, steps, svg
from benchmarks.soak.run import soak

SVG = "{http://www.w3.org/2000/svg}"


def curves(text: str) -> list[list[tuple[float, ...]]]:
    found = ElementTree.fromstring(text).iter(f"{SVG}polyline")
    points = [curve.attrib["points"].split() for curve in found]
    return [[tuple(map(float, p.split(","))) for p in curve] for curve in points]


def test_an_axis_has_round_values_up_to_the_highest() -> None:
    axes = [
        (0, [0, 1]),
        (1, [0, 0.25, 0.5, 0.75, 1]),
        (100, [0, 25, 50, 75, 100]),
        (101, [0, 50, 100, 150]),
        (0.3, [0, 0.1, 0.2, 0.3]),
    ]
    assert [steps(highest) for highest, _ in axes] == [
        pytest.approx(values) for _, values in axes
    ]


def test_a_curve_is_drawn_from_the_bottom_left_and_named() -> None:
    line = [(0.0, 0.0), (1.0, 50.0), (2.0, 100.0)]
    ((first, second, third),) = curves(svg([Panel("x", {"": line})]))
    assert first == (0, HEIGHT)
    assert (second[1], third[1]) == (HEIGHT / 2, 0)
    assert third[0] == 2 * second[0]
    drawn = svg([Panel("a < b", {"p50": [(0.0, 1.0)], "p99": [(0.0, 2.0)]})])
    texts = ElementTree.fromstring(drawn).iter(f"{SVG}text")
    assert {"a < b", "p50", "p99"} <= {text.text for text in texts}


def test_the_page_shows_a_soak_that_was_run(tmp_path: Path) -> None:
    assert section(tmp_path / "soak.json") == "Not run yet."
    assert PICTURE.exists() == RESULTS.exists()


@pytest.mark.slow("runs a benchmark")
@pytest.mark.processes
def test_a_short_soak_runs_every_job_as_often_as_it_should() -> None:
    with tempfile.TemporaryDirectory(prefix="jq-") as name:
        folder = Path(name)
        with running(folder) as server:
            found = soak(Site(server, folder), minutes=0.1, every=1)
    assert len(found["samples"]) >= 5
    assert found["jobs"]["short"] > 100
    assert all(sample["workers_mb"] > 0 for sample in found["samples"][2:])
    assert "| jobs/s |" in summary(found)
    assert [len(curve) for curve in curves(picture(found))] == [
        len(found["samples"])
    ] * 11
    assert "runworkers" not in " ".join(
        part
        for process in psutil.Process().children(recursive=True)
        for part in process.cmdline()
    )
