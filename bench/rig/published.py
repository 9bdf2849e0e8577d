"""Writes docs/benchmarks.md and its pictures from the measurements of a run."""

import json
import subprocess
from pathlib import Path
from typing import Any

from rig import report

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
PICTURES = ROOT / "docs" / "benchmarks"

#: maps a picture to its title, its unit, whether its axis is logarithmic, and the metric of each series
CHARTS: dict[str, tuple[str, str, bool, dict[str, str]]] = {
    "cost": ("Processor time per request, 64 connections", "microseconds (log)", True, {"per request": "cpu_us"}),
    "throughput": (
        "Requests per second on one core, 64 connections", "requests/s (log)", True, {"burst": "requests_s"},
    ),
    "latency": (
        "Added latency, 16 connections", "milliseconds (log)", True, {"median": "added_p50_ms", "p99": "added_p99_ms"},
    ),
    "memory": ("Memory", "MiB", False, {"idle": "idle_mib", "after the soak": "late_mib"}),
}  # fmt: skip

#: The features that were switched on in each gateway.
SWITCHED_ON = {
    "nginx": "a plain reverse proxy with persistent connections; no API key, no recording",
    "litellm": "its proxy with one worker and a master key; no database, no recording, logs only errors",
    "portkey": "as published; no API key of its own, no recording",
    "tensorzero": "its embedded gateway, in Rust; no API key, no recording",
    "gatehouse": "API key, rate limit, routing, audit and usage records in PostgreSQL (on the other core);"
    " no inspection, like the other gateways",
    "one_core": "the same Gatehouse, with the recording processes on the gateway's core",
    "nginx_tls": "the same nginx, with a provider over TLS whose certificate it checks",
    "gatehouse_tls": "the same Gatehouse, with a provider over TLS",
    "libraries": "the same Gatehouse with uvicorn and aiohttp as HTTP server and client (`INGRESS`, `OUTBOUND`)",
    "inspecting": "the same Gatehouse, with the default settings: 76 patterns inspect every request and answer",
}


def write(measurements: dict[str, Any], python: Path) -> None:
    """Write the page and its pictures. `python` must have matplotlib. Raises `CalledProcessError`."""
    figures = {name: own for name, own in measurements["medians"].items() if name != "direct"}
    charts: list[dict[str, Any]] = []
    for name, (title, unit, logarithmic, series) in CHARTS.items():
        values = {label: _values(measurements["medians"], metric) for label, metric in series.items()}
        if any(any(value) for value in values.values()):
            charts.append(
                {"name": name, "title": title, "unit": unit, "log": logarithmic, "of": list(figures), "series": values}
            )
    PICTURES.mkdir(exist_ok=True)
    command = [str(python), str(Path(__file__).parent / "plots.py"), str(PICTURES)]
    subprocess.run(command, input=json.dumps(charts), text=True, check=True)
    PAGE.write_text(_page(measurements, [chart["name"] for chart in charts]))


def ours(gatehouse: Path | None) -> str:
    """Return the version that Gatehouse prints and, if it runs from a git checkout, the commit of the checkout."""
    if gatehouse is None:
        return "gatehouse: not there"
    version = __output_of(str(gatehouse), "--version").rpartition(" ")[2] or "unknown"
    python = gatehouse.with_name("python")
    folder = __output_of(str(python), "-I", "-c", "import gatehouse; print(*gatehouse.__path__)")
    # An installed Gatehouse may be in a folder of a checkout, but is not part of the checkout.
    known = folder and "site-packages" not in folder
    commit = known and __output_of("git", "-C", folder, "describe", "--always", "--exclude=*", "--dirty=+changes")
    return f"gatehouse=={version}" + (f" ({commit})" if commit else "")


def __output_of(*command: str) -> str:
    """Return the output of a command, or an empty string if it fails or does not exist."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _values(medians: report.Figures, metric: str) -> list[float | None]:
    direct = medians.get("direct", {})
    values: list[float | None] = []
    for name, own in medians.items():
        if name == "direct":
            continue
        if metric.startswith("added_"):
            percentile = f"{metric.split('_')[1]}_us_16"
            known = percentile in own and percentile in direct
            values.append(max((own[percentile] - direct[percentile]) / 1000, 0.001) if known else None)
        else:
            values.append(own.get(metric))
    return values


def _page(measurements: dict[str, Any], pictures: list[str]) -> str:
    machine, versions, plan = measurements["machine"], measurements["versions"], measurements["plan"]
    named = [name for name in measurements["medians"] if name in SWITCHED_ON]
    goals = [
        report.Goal(goal["title"], goal["reached"], goal["target"], goal["least"]) for goal in measurements["goals"]
    ]
    parts = [
        "# Benchmarks",
        "Gatehouse compared with other gateways on one machine, in one run. `make bench` writes this page and its"
        " pictures. `bench/README.md` describes what is measured, and how.",
        f"Run of {measurements['date']} on {machine['cpus']} processor cores ({machine.get('processor', 'unknown')}),"
        f" {machine['system']}, Python {machine['python']}. Versions: {', '.join(versions.values())}."
        f" {plan['rounds']} rounds, {plan['seconds']:g} seconds per measurement, a soak of {plan['soak']:,} requests.",
        "## Features of each gateway",
        "| | |\n|---|---|\n" + "\n".join(f"| {name} | {SWITCHED_ON[name]} |" for name in named),
        "## Pictures",
        "\n\n".join(f"![{CHARTS[name][0]}](benchmarks/{name}.svg)" for name in pictures),
        "## All values",
        "Medians of the rounds. `direct` is the provider without a gateway.",
        report.table(measurements["medians"]),
        report.ratios(measurements["medians"]),
        "## Goals",
        "```text\n" + "\n".join(goal.line() for goal in goals) + "\n```",
    ]
    if measurements["remarks"]:
        parts += ["## Remarks", "\n".join(f"- {line}" for line in measurements["remarks"])]
    return "\n\n".join(part for part in parts if part) + "\n"
