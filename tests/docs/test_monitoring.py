"""The dashboards and alert rules in deploy/ use only metrics that a platform exports."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.platform import RunningPlatform

from gatehouse.foundation.metrics import Family, Histogram
from gatehouse.platform.metrics import PlatformMetrics

DASHBOARDS = sorted(Path("deploy/grafana").glob("*.json"))
RULES = Path("deploy/prometheus/alerts.yml")
#: Labels that Prometheus adds, and the label of a histogram's buckets.
ADDED = {"instance", "job", "le"}

#: Paths of model calls, and paths of probes.
CALLS = {
    "/v1/chat/completions", "/v1/messages", "/v1/embeddings", "/v1/responses", "/api/chat/completions",
    "/api/conversations/{conversation_id}/messages",
}  # fmt: skip
PROBES = {"/health", "/api/health/live", "/api/health/ready", "/api/health/startup", "/metrics"}


def dashboard(path: Path) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return body


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"] for rule in group["rules"]]


def expressions() -> Iterator[tuple[str, str]]:
    """Yield each expression with its place."""
    for path in DASHBOARDS:
        for panel in dashboard(path)["panels"]:
            for target in panel["targets"]:
                yield f"{path.name}: {panel['title']}", target["expr"]
        for variable in dashboard(path)["templating"]["list"]:
            if variable["type"] == "query":
                yield f"{path.name}: ${variable['name']}", variable["query"]
    for rule in rules():
        yield rule["alert"], rule["expr"]


EXPRESSIONS = list(expressions())


def named(expression: str) -> set[str]:
    return set(re.findall(r"\bservice_\w+", expression))


@pytest.fixture(scope="module")
async def published(platform: RunningPlatform) -> set[str]:
    """Return the names of the exported metrics, including the series of histograms."""
    answer = await platform.anonymous.get("/metrics")
    assert answer.status_code == 200
    kinds = re.findall(r"^# TYPE (\S+) (\S+)$", answer.text, re.MULTILINE)
    parts = {f"{name}_{part}" for name, kind in kinds if kind == "histogram" for part in ("bucket", "sum", "count")}
    return {name for name, _ in kinds} | parts


@pytest.mark.parametrize(("where", "expression"), EXPRESSIONS, ids=[where for where, _ in EXPRESSIONS])
async def test_every_metric_is_exported(published: set[str], where: str, expression: str) -> None:
    assert named(expression)
    assert named(expression) <= published, where


@pytest.mark.parametrize(("where", "expression"), EXPRESSIONS, ids=[where for where, _ in EXPRESSIONS])
def test_every_label_belongs_to_a_metric(tmp_path: Path, where: str, expression: str) -> None:
    families: dict[str, Family] = {}
    for figure in vars(PlatformMetrics(tmp_path)).values():
        if (family := getattr(figure, "family", None)) is not None:
            families[family.name] = family
            if isinstance(figure, Histogram):
                families[f"{family.name}_bucket"] = family
    labels = {label for name in named(expression) for label in families[name].labels} | ADDED
    grouped = [label for group in re.findall(r"\bby \(([^)]*)\)", expression) for label in group.split(",")]
    matched = re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"', expression)
    assert {label.strip() for label in [*grouped, *matched]} <= labels, where


@pytest.fixture(scope="module")
async def routes(platform: RunningPlatform) -> set[str]:
    """Return every path with a POST operation."""
    paths = (await platform.anonymous.get("/openapi.json")).json()["paths"]
    return {path for path, operations in paths.items() if "post" in operations}


@pytest.mark.parametrize(("where", "expression"), EXPRESSIONS, ids=[where for where, _ in EXPRESSIONS])
def test_expressions_select_existing_routes(routes: set[str], where: str, expression: str) -> None:
    assert routes >= CALLS
    for how, pattern in re.findall(r'route(=~|!~)"([^"]*)"', expression):
        match = {route for route in {*routes, *PROBES} if re.fullmatch(pattern, route)}
        if how == "=~":
            assert match == CALLS, where
        else:
            assert match >= PROBES, where
            assert match - PROBES - {"/v1/outposts/policy-bundle"} in (set(), CALLS), where


def test_counters_used_with_increase_begin_at_zero(tmp_path: Path) -> None:
    """Prometheus detects no increase in a counter whose first value is one."""
    families = {
        figure.family.name: figure for figure in vars(PlatformMetrics(tmp_path)).values() if hasattr(figure, "family")
    }
    names = {name for rule in rules() for name in re.findall(r"\bincrease\((\w+)", rule["expr"])}
    assert len(names) > 1
    for name in names:
        assert set(families[name].values.values()) == {0.0}, name


def test_the_cases_for_promtool_use_existing_rules_and_metrics(published: set[str]) -> None:
    result = yaml.safe_load(RULES.with_name("alerts_test.yml").read_text("utf-8"))
    assert result["rule_files"] == [RULES.name]
    cases = result["tests"]
    assert {alert["alertname"] for case in cases for alert in case["alert_rule_test"]} <= {
        rule["alert"] for rule in rules()
    }
    assert {name for case in cases for series in case["input_series"] for name in named(series["series"])} <= published


def test_every_alert_has_a_severity_and_a_summary() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names)) > 10
    for rule in rules():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"]["summary"]


@pytest.mark.parametrize("path", DASHBOARDS, ids=[path.name for path in DASHBOARDS])
def test_a_dashboard_can_be_imported(path: Path) -> None:
    board = dashboard(path)
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids)) > 5
    assert {panel["datasource"]["uid"] for panel in board["panels"]} == {"${datasource}"}
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]]
    assert len(places) == len(set(places))


def test_each_dashboard_has_its_own_id() -> None:
    assert len({dashboard(path)["uid"] for path in DASHBOARDS}) == len(DASHBOARDS) == 3
