"""The dashboard and the alert rules in ``docs/operations`` name what there is, and
Prometheus understands them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from django_jobqueue.metrics.catalogue import metrics
from django_jobqueue.metrics.exposition import Exposition
from django_jobqueue.metrics.metric import Kind, Metric
from tests.docs.pages import DOCS
from tests.metrics.test_exposition import some

FILES: Final = DOCS / "operations"
OF_TARGETS: Final = {"instance", "job"}  # labels that Prometheus adds
PARTS: Final = ("_bucket", "_count", "_sum")  # of a histogram
DEFAULTS: Final = {"$__rate_interval": "5m"}  # of the dashboard's variables
DEFAULTS.update(dict.fromkeys(("$queue", "$job_type", "$instance"), ".*"))

needs_promtool = pytest.mark.skipif(
    not shutil.which("promtool"), reason="needs promtool"
)


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FILES / "grafana.json").read_text())
    return found


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((FILES / "prometheus-rules.yml").read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def panels() -> list[dict[str, Any]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    """Each with the name of the panel or alert that it is of."""
    for rule in rules():
        yield rule["alert"], rule["expr"]
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def metric_of(series: str) -> Metric | None:
    if series in metrics():
        return None if metrics()[series].kind is Kind.HISTOGRAM else metrics()[series]
    for part in PARTS:
        metric = metrics().get(series.removesuffix(part))
        if series.endswith(part) and metric and metric.kind is Kind.HISTOGRAM:
            return metric
    return None


def problems(expression: str) -> Iterator[str]:
    """What an expression names that is not there: metrics, labels, values of labels."""
    labels: set[str] = set(OF_TARGETS)
    for series, matchers in re.findall(r"\b(jobqueue_\w+)(\{[^}]*\})?", expression):
        metric = metric_of(series)
        if metric is None:
            yield series
            continue
        values = {label.name: label.values for label in metric.labels}
        values |= dict.fromkeys(OF_TARGETS, ())
        labels |= {*values, *(["le"] if metric.kind is Kind.HISTOGRAM else [])}
        for name, value in re.findall(r'(\w+)(?:=~?|!=|!~)"([^"]*)"', matchers):
            if name not in values:
                yield f"{series}{{{name}}}"
            elif values[name] and not {*value.split("|")} <= {*values[name]}:
                yield f'{series}{{{name}="{value}"}}'
    for names in re.findall(r"\b(?:by|on|without) \(([^)]*)\)", expression):
        yield from {*re.split(r",\s*", names)} - labels


def test_each_metric_label_and_value_is_in_the_catalogue() -> None:
    found = {where: [*problems(expr)] for where, expr in expressions()}
    assert {where: wrong for where, wrong in found.items() if wrong} == {}
    wrong = (
        'sum by (queue, colour) (jobqueue_jobs{state!="done", kind="a", queue=~"$q"})'
        " + jobqueue_attempt_wait_seconds + jobqueue_nothing_total"
    )
    assert [*problems(wrong)] == [
        'jobqueue_jobs{state="done"}',
        "jobqueue_jobs{kind}",
        "jobqueue_attempt_wait_seconds",
        "jobqueue_nothing_total",
        "colour",
    ]


def test_the_dashboard_has_its_rows_and_one_data_source() -> None:
    board = dashboard()
    assert [one["title"] for one in board["panels"] if one["type"] == "row"] == [
        *("Now", "Throughput", "Waits and run times", "Workers", "Failures"),
        *("Endpoints", "Database"),
    ]
    sources = [v for v in board["templating"]["list"] if v["type"] == "datasource"]
    assert [source["name"] for source in sources] == ["datasource"]
    of = {"type": "prometheus", "uid": "${datasource}"}
    for panel in panels():
        assert panel["datasource"] == of, panel["title"]
        assert all(target["datasource"] == of for target in panel["targets"])
    ids = [panel["id"] for panel in board["panels"]]
    assert len({*ids}) == len(ids)
    for variable in board["templating"]["list"][1:]:
        assert [*problems(variable["definition"])] == []
    cells: set[tuple[int, int]] = set()
    for panel in board["panels"]:  # none covers another
        at = panel["gridPos"]
        width, height = (range(at[x], at[x] + at[n]) for x, n in ("xw", "yh"))
        own = {*product(width, height)}
        assert not own & cells, panel["title"]
        assert width.stop <= 24, panel["title"]
        cells |= own


def test_each_alert_is_described_and_its_test_tries_it_both_ways() -> None:
    guide = (DOCS / "guides" / "metrics.md").read_text()
    tried = yaml.safe_load((FILES / "rules-test.yml").read_text())["tests"]
    for rule in rules():
        name = rule["alert"]
        assert f"| `{name}` |" in guide, name
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert {*rule["annotations"]} == {"summary", "description"}
        silent, firing = (
            [a["exp_alerts"] for a in test["alert_rule_test"] if a["alertname"] == name]
            for test in tried[:2]
        )
        assert silent == [[]], name
        assert firing[0], name


@pytest.mark.dear
@needs_promtool
def test_prometheus_understands_the_rules_which_fire_as_their_tests_say() -> None:
    promtool("check", "rules", "prometheus-rules.yml")
    promtool("test", "rules", "rules-test.yml")


@needs_promtool
def test_prometheus_understands_the_dashboard_and_all_names_units_and_help(
    tmp_path: Path,
) -> None:
    recorded: list[dict[str, str]] = []
    for panel in panels():
        for target in panel["targets"]:
            expression = target["expr"]
            for variable, value in DEFAULTS.items():
                expression = expression.replace(variable, value)
            assert "$" not in expression, panel["title"]
            recorded.append({"record": f"x:{len(recorded)}", "expr": expression})
    file = tmp_path / "dashboard.yml"
    groups = [{"name": "dashboard", "rules": recorded}]
    file.write_text(yaml.safe_dump({"groups": groups}))
    promtool("check", "rules", str(file))
    text = Exposition().render(map(some, metrics().values())).body
    assert text.count(b"# TYPE ") == len(metrics())
    promtool("check", "metrics", given=text)


def promtool(*arguments: str, given: bytes | None = None) -> None:
    command = ["promtool", *arguments]
    done = subprocess.run(command, cwd=FILES, input=given, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b""), done.stdout.decode()
