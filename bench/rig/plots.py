"""Draws bar charts as SVG: charts as JSON on standard input, the folder as the one argument.

Runs in a Python of its own that has matplotlib. Each chart: `name`, `title`, `unit`, `log`, `of` (names of the bars)
and `series` (label -> a value or null for each bar).
"""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
# The same file for the same figures.
mpl.rcParams.update({"svg.hashsalt": "gatehouse", "font.size": 11, "svg.fonttype": "path"})

import matplotlib.pyplot as plt  # noqa: E402 - after its backend was chosen

OURS = {"gatehouse", "inspecting", "one_core", "libraries"}


def draw(chart: dict[str, Any], folder: Path) -> None:
    names, series = chart["of"], chart["series"]
    height = 0.8 / len(series)
    figure, axes = plt.subplots(figsize=(8, 0.7 + 0.5 * len(names) * max(1, len(series) * 0.7)))
    for at, (label, values) in enumerate(series.items()):
        places = [row + at * height for row in range(len(names))]
        bars = axes.barh(
            places, [value or 0 for value in values], height * 0.9, label=label,
            color=["#00796b" if name in OURS else "#90a4ae" for name in names], alpha=1 - 0.45 * at,
        )  # fmt: skip
        told = [f" {value:,.3g}" if value is not None and value < 1000 else f" {value or 0:,.0f}" for value in values]
        axes.bar_label(bars, [text if value is not None else " -" for text, value in zip(told, values, strict=True)])
    axes.set_yticks([row + 0.4 - height / 2 for row in range(len(names))], names)
    axes.invert_yaxis()
    if chart["log"]:
        axes.set_xscale("log")
    axes.margins(x=0.15)
    axes.set_title(chart["title"], loc="left")
    axes.set_xlabel(chart["unit"])
    axes.spines[["top", "right"]].set_visible(False)
    if len(series) > 1:
        axes.legend(frameon=False, loc="best")
    figure.tight_layout()
    figure.savefig(folder / f"{chart['name']}.svg", metadata={"Date": None})
    plt.close(figure)


def main() -> int:
    for chart in json.load(sys.stdin):
        draw(chart, Path(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
