"""Measures the pattern tier with labelled texts: precision, recall and F1 for each set and label, and wrong findings.

.venv/bin/python bench/dlp/quality.py --truth FOLDER
.venv/bin/python bench/dlp/quality.py --truth FOLDER --sets a_gitleaks --misses
"""

import argparse
import dataclasses
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.dlp.goals import GOALS, reached
from bench.dlp.labels import LABELS, MERGES
from bench.dlp.rows import Text, load
from bench.dlp.scoring import Count, DetectedValue, Score, score

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.matcher import Matcher
from gatehouse.detection.pattern import CERTAIN_SCORE
from gatehouse.detection.search.matching import compile_pattern, spans


class Definition:
    """Searches for each pattern separately, by the definition in `gatehouse.detection.search.matching`."""

    def __init__(self) -> None:
        self._compiled = [(pattern, compile_pattern(pattern)) for pattern in BUILT_IN]

    def find(self, text: str) -> list[DetectedValue]:
        return sorted(
            {
                DetectedValue(
                    span.start, span.end, LABELS.get(pattern.entity_type, pattern.entity_type), pattern.category
                )
                for pattern, shapes in self._compiled
                for shape in shapes
                for span in spans(shape, text)
                if span.score >= pattern.threshold
            }
        )


class Product:
    """Searches as in a request: with normalised and decoded views, for all patterns at once."""

    def __init__(self, *, certain: bool = False) -> None:
        self._matcher = Matcher(BUILT_IN)
        self._patterns = {pattern.id: pattern for pattern in BUILT_IN}
        self._least = {
            pattern.id: max(pattern.threshold, CERTAIN_SCORE)
            if certain and pattern.action != "log_only"
            else pattern.threshold
            for pattern in BUILT_IN
        }

    def find(self, text: str) -> list[DetectedValue]:
        return [
            DetectedValue(
                finding.start,
                finding.end,
                LABELS.get(finding.entity_type, finding.entity_type),
                self._patterns[finding.source].category,
            )
            for finding in self._matcher.scan(text)
            if finding.score >= self._least[finding.source]
        ]


def judged(text: Text, only: tuple[str, ...]) -> Text:
    """Return the text with only the labels that the set is judged by."""
    if not only:
        return text
    rows = [row for row in text.rows if row.label is None or row.label in only]
    return dataclasses.replace(text, rows=rows, labels=text.labels & set(only))


def measure(tier: Definition | Product, folder: Path, name: str, predictions: Path | None) -> Score:
    goal = GOALS[name]
    texts = load(folder, name, MERGES)
    findings = {identity: tier.find(text.text) for identity, text in texts.items()}
    if predictions:
        write_predictions(predictions / f"{name}.jsonl", findings)
    kept = {identity: judged(text, goal.only) for identity, text in texts.items()}
    return score({identity: text for identity, text in kept.items() if text.rows}, findings, goal.level)


def write_predictions(path: Path, findings: dict[str, list[DetectedValue]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for identity, result in findings.items():
            listed = [{"start": one.start, "end": one.end, "label": one.label} for one in result]
            file.write(json.dumps({"doc_id": identity, "spans": listed}) + "\n")


def figure(value: float | None) -> str:
    return "    -" if value is None else f"{value:5.3f}"


def written(count: Count) -> dict[str, float | None]:
    rates = {"precision": count.precision, "recall": count.recall, "f1": count.f1}
    return dataclasses.asdict(count) | rates


def line(name: str, count: Count) -> str:
    return (
        f"{name:28s} {count.asked:6d} {count.found:6d} {count.right:6d} {count.wrong:6d}   "
        f"{figure(count.precision)} {figure(count.recall)} {figure(count.f1)}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth", type=Path, required=True, help="folder of the sets, *.jsonl or *.jsonl.gz")
    parser.add_argument("--sets", nargs="+", choices=GOALS, default=list(GOALS))
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--misses", action="store_true", help="print what was missed and what was false")
    parser.add_argument("--definition", action="store_true", help="each pattern on its own, without views of the text")
    parser.add_argument("--certain", action="store_true", help="ignore findings that are too unsure for an action")
    parser.add_argument("--predictions", type=Path, help="folder for the findings, one file for each set")
    arguments = parser.parse_args()
    tier = Definition() if arguments.definition else Product(certain=arguments.certain)
    figures = {}
    print(f"{'':28s} {'asked':>6s} {'found':>6s} {'right':>6s} {'wrong':>6s}   {'P':>5s} {'R':>5s} {'F1':>5s}")
    for name in arguments.sets:
        result = measure(tier, arguments.truth, name, arguments.predictions)
        print(line(name, result.total) + "   " + reached(GOALS[name], result.total.f1, result.alarms, result.texts))
        for key, count in sorted(result.per.items(), key=lambda item: -item[1].asked) if len(result.per) > 1 else ():
            instead = ", ".join(f"{what} {times}" for what, times in result.confusion.get(key, {}).items())
            print(
                "  " + line(key, count)[:26] + line(key, count)[28:] + (f"   missed as: {instead}" if instead else "")
            )
        if arguments.misses:
            for miss in result.misses:
                before, here = miss.text[max(0, miss.start - 50) : miss.start], miss.text[miss.start : miss.end][:90]
                print(f"    {miss.kind} {miss.key} | {before!r} >>{here!r}<<")
        figures[name] = {
            "total": written(result.total),
            "per": {key: written(count) for key, count in result.per.items()},
            "confusion": {key: dict(counter) for key, counter in result.confusion.items()},
            "texts": result.texts,
            "alarms": result.alarms,
        }
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
