"""Draws charts as SVG files. Standard input has the charts as JSON, and the only argument is the folder for the files.

It runs in a separate Python that has matplotlib. A bar chart has `name`, `title`, `unit`, `log`, `of` (the names of the
bars) and `series` (maps a label to a value or null for each bar). A chart of points has `name`, `x` and `y` (the names
of the axes) and `panels`, which are drawn next to each other. A panel has `title` and `points` (maps a label to x and
y). The x axis is logarithmic."""

import json
import sys
from math import log10
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
# With a fixed salt, equal figures give equal files.
mpl.rcParams.update({"svg.hashsalt": "gatehouse", "font.size": 11, "svg.fonttype": "path"})

import matplotlib.pyplot as plt  # noqa: E402 - after its backend was chosen

OURS = {"gatehouse", "inspecting", "one_core", "libraries", "gatehouse_tls"}


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
        results = [
            f" {value:,.3g}" if value is not None and value < 1000 else f" {value or 0:,.0f}" for value in values
        ]
        axes.bar_label(bars, [text if value is not None else " -" for text, value in zip(results, values, strict=True)])
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


def draw_points(chart: dict[str, Any], folder: Path) -> None:
    panels = chart["panels"]
    figure, all_axes = plt.subplots(1, len(panels), figsize=(6.5 * len(panels), 5), sharey=True, squeeze=False)
    for axes, panel in zip(all_axes[0], panels, strict=True):
        labels: list[tuple[float, float]] = []
        for label, (x, y) in sorted(panel["points"].items(), key=lambda point: -point[1][1]):
            color = "#00796b" if label.lower().startswith("gatehouse") else "#607d8b"
            axes.scatter([x], [y], color=color, zorder=2)
            height = y
            while any(abs(log10(x / other)) < 1.4 and abs(height - theirs) < 0.049 for other, theirs in labels):
                height -= 0.01
            labels.append((x, height))
            axes.annotate(
                label, (x, y), xytext=(x * 1.4, height), va="center", fontsize=9, color=color,
                arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.5},
            )  # fmt: skip
        axes.set_xscale("log")
        places = [x for x, _ in panel["points"].values()]
        # Leave space for the labels, which are to the right of the points.
        axes.set_xlim(min(places) / 2, max(places) * 100)
        axes.set_ylim(0, 1.08)
        axes.grid(color="#eceff1")
        axes.set_title(panel["title"], loc="left")
        axes.set_xlabel(chart["x"])
        axes.spines[["top", "right"]].set_visible(False)
    all_axes[0][0].set_ylabel(chart["y"])
    figure.tight_layout()
    figure.savefig(folder / f"{chart['name']}.svg", metadata={"Date": None})
    plt.close(figure)


def main() -> int:
    for chart in json.load(sys.stdin):
        (draw_points if "panels" in chart else draw)(chart, Path(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
