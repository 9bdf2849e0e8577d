"""Writes the tables of docs/dlp-patterns.md: the patterns of the catalog, and the results of measurements.

.venv/bin/python bench/dlp/page.py                    # the patterns
.venv/bin/python bench/dlp/page.py --figures OUT.json # also the figures that quality.py --json wrote
.venv/bin/python bench/dlp/page.py --ordinary OUT.json # also the figures that bench.dlp.ordinary.measure --json wrote
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.dlp.goals import GOALS, reached  # noqa: E402
from bench.dlp.labels import LABELS, MERGES, SAME  # noqa: E402

from gatehouse.detection.catalog import BUILT_IN  # noqa: E402
from gatehouse.detection.pattern import CATEGORIES, Pattern  # noqa: E402

PAGE: Final = ROOT / "docs" / "dlp-patterns.md"


def benchmark_labels(pattern: Pattern) -> str:
    """Return the labels of the benchmark that the entity type of the pattern covers."""
    label = LABELS.get(pattern.entity_type, pattern.entity_type)
    labels = [one for one, merged in MERGES.items() if merged == label] + [label] * (label in SAME)
    return ", ".join(f"`{one}`" for one in sorted(labels))


def patterns() -> str:
    lines = []
    for category in CATEGORIES:
        listed = [pattern for pattern in BUILT_IN if pattern.category == category]
        lines += [f"### {category} ({len(listed)})", ""]
        named = category != "secret"
        lines.append("| Pattern | Entity type | Action | Finds |" + (" Benchmark labels |" if named else ""))
        lines.append("|---|---|---|---|" + ("---|" if named else ""))
        lines += [
            f"| `{pattern.id}` | `{pattern.entity_type}` | {pattern.action} | {pattern.name} |"
            + (f" {benchmark_labels(pattern)} |" if named else "")
            for pattern in listed
        ]
        lines.append("")
    return "\n".join(lines)


def figures(measured: dict[str, Any]) -> str:
    lines = ["| Set | Precision | Recall | F1 | Goal |", "|---|---|---|---|---|"]
    for name, goal in GOALS.items():
        result = measured[name]
        total = result["total"]
        lines.append(
            f"| {name} | {decimal(total['precision'])} | {decimal(total['recall'])} | {decimal(total['f1'])} "
            f"| {reached(goal, total['f1'], result['alarms'], result['texts'])} |"
        )
    for name, result in measured.items():
        if result["per"]:
            lines += [
                "",
                f"**{name}**",
                "",
                "| Label | Values | Found | Wrong | F1 | Found instead |",
                "|---|---|---|---|---|---|",
            ]
            lines += [
                f"| `{label}` | {count['asked']} | {count['result']} | {count['wrong']} | {decimal(count['f1'])} "
                f"| {listed(result['confusion'].get(label, {}))} |"
                for label, count in sorted(result["per"].items(), key=lambda item: -item[1]["asked"])
            ]
            # If a set is judged by category, missed values have different labels.
            lines += [
                f"| `{label}` | | | | | {listed(instead)} |"
                for label, instead in sorted(result["confusion"].items())
                if label not in result["per"]
            ]
    return "\n".join(lines) + "\n"


def listed(instead: dict[str, int]) -> str:
    return ", ".join(f"{what} {times}" for what, times in sorted(instead.items(), key=lambda item: -item[1]))


def ordinary(measured: dict[str, Any]) -> str:
    lines = [
        "| Template set | False redactions | Per 10,000 words | Per 1,000 agent requests | By pattern |",
        "|---|---|---|---|---|",
    ]
    for part, result in measured.items():
        in_words, in_turns = result["false_in_documents"], result["false_in_turns"]
        lines.append(
            f"| {part} | {in_words + in_turns} | {in_words * 10_000 / result['words']:.2f} "
            f"| {in_turns * 1_000 / result['turns']:.2f} | {listed(dict(result['by_pattern']))} |"
        )
    for part, result in measured.items():
        lines += ["", f"**{part}**", "", "| Label | Values | Found | Found instead |", "|---|---|---|---|"]
        lines += [
            f"| `{label}` | {count['asked']} | {count['found']} | {listed(count['instead'])} |"
            for label, count in result["labels"].items()
        ]
    return "\n".join(lines) + "\n"


def decimal(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def between(page: str, name: str, content: str) -> str:
    """Return `page` with `content` between the two comments that contain `name`."""
    marked = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
    return re.sub(marked, lambda marks: f"{marks[1]}\n{content}\n{marks[2]}", page, flags=re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", type=Path)
    parser.add_argument("--ordinary", type=Path)
    arguments = parser.parse_args()
    page = between(PAGE.read_text(), "patterns", patterns())
    if arguments.figures:
        page = between(page, "figures", figures(json.loads(arguments.figures.read_text())))
    if arguments.ordinary:
        page = between(page, "ordinary", ordinary(json.loads(arguments.ordinary.read_text())))
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
