"""Measures the quality and the speed of the entities tier.

    .venv/bin/python -m bench.dlp.entities TRUTH/dev [--folds out] [--json figures.json]

TRUTH/dev contains labelled texts, one JSON object per line: `doc_id text label start end strength annotated group ...`.
The sets that the shipped model was trained on are only scored with `--folds`. This is a folder with some of the models
`fold-0` to `fold-4`. `python -m training.entities --fold N` writes each of them, without training on the groups that it
is scored with.

A span of the truth is found if a finding of its type overlaps it. A finding is right if it overlaps a span of its type.
Findings of types that a text is not annotated with, and findings on spans whose strength is not `strong`, do not count.
"""

import argparse
import collections
import gzip
import json
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from training.entities.corpus import TRAINED_SETS, load
from training.entities.folds import FOLDS, folds_of

from gatehouse.detection.entities.embedded import EmbeddedRecognizer
from gatehouse.detection.findings import Finding
from gatehouse.detection.models import Recognizer

PLAIN_SETS = ("b_wikigold", "b_presidio_research", "b_presidio_research_large")
NAMES = ("person", "organization", "location")
GOALS = {"b_wikigold": 0.85, "b_wnut17": 0.72, "b_btc": 0.77}
FLOORS = {"b_wikigold": 0.378, "b_wnut17": 0.238, "b_btc": 0.296, "b_sec": 0.130, "b_re3d_gov": 0.368}


@dataclass
class Document:
    text: str
    group: str
    annotated: set[str]
    spans: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Count:
    truth: int = 0
    found: int = 0
    right: int = 0
    wrong: int = 0

    def __add__(self, other: "Count") -> "Count":
        return Count(*(a + b for a, b in zip(self.row(), other.row(), strict=True)))

    def row(self) -> tuple[int, int, int, int]:
        return self.truth, self.found, self.right, self.wrong

    def figures(self) -> dict[str, float]:
        precision = self.right / (self.right + self.wrong) if self.right + self.wrong else 0.0
        recall = self.found / self.truth if self.truth else 0.0
        f1 = 2 * precision * recall / (precision + recall) if precision and recall else 0.0
        return {"precision": round(precision, 3), "recall": round(recall, 3), "f1": round(f1, 3), "truth": self.truth}


def documents(path: Path) -> dict[str, Document]:
    results: dict[str, Document] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            document = results.setdefault(
                row["doc_id"], Document(row["text"], row["group"], set(row["annotated"] or ()))
            )
            if row["is_positive"]:
                document.spans.append(row)
                document.annotated.add(row["label"])
    return results


def count(document: Document, findings: list[Finding], counts: dict[str, Count]) -> None:
    requests = [span for span in document.spans if span["strength"] == "strong"]
    free = [span for span in document.spans if span["strength"] != "strong"]
    for span in requests:
        counts[span["label"]].truth += 1
        counts[span["label"]].found += any(_hits(span, finding) for finding in findings)
    for finding in findings:
        if any(_hits(span, finding) for span in requests):
            counts[finding.entity_type].right += 1
        elif any(_overlaps(span, finding) for span in free) or (document.spans and not requests):
            continue
        elif finding.entity_type in document.annotated:
            counts[finding.entity_type].wrong += 1


def _overlaps(span: dict[str, Any], finding: Finding) -> bool:
    return bool(span["start"] < finding.end and finding.start < span["end"])


def _hits(span: dict[str, Any], finding: Finding) -> bool:
    return span["label"] == finding.entity_type and _overlaps(span, finding)


def score(
    path: Path, recognizers: dict[int, Recognizer], kinds: tuple[str, ...], folds: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """Score one recognizer per fold, or a single recognizer with the key -1 for all texts. `folds` maps groups to
    folds. Groups without a fold are left out."""
    counts: dict[str, Count] = collections.defaultdict(Count)
    for document in documents(path).values():
        recognizer = recognizers.get(folds[document.group] if folds else -1)
        if not recognizer:
            continue
        (findings,) = recognizer.recognize([document.text])
        count(document, findings, counts)
    chosen = {kind: counts[kind] for kind in kinds if counts[kind].truth}
    return {kind: value.figures() for kind, value in chosen.items()} | {
        "all": sum((counts[kind] for kind in NAMES), Count()).figures()
    }


def latency(recognizer: Recognizer) -> dict[str, float]:
    """Return the milliseconds for 100 words of prose on the calling thread, as elapsed time and as processor time."""
    text = (
        "Yesterday Maria Keller of the Harbour Insurance Group wrote to our office in Rotterdam about the claim. "
        "She asks whether the payment of last month has arrived, since the bank in Antwerp has no record of it. "
        "Please check the account, call her back before Friday, and tell Mr. Okafor what you have found. "
        "He works for the auditors at Lindqvist and Partners and needs the figures for his report on the third "
        "quarter. If nothing can be found by then we should offer to pay again, and ask the lawyers in "
        "Geneva whether the transfer can be called back."
    )
    assert len(text.split()) == 100
    clock, processor = [], []
    for _ in range(100):
        began, used = time.perf_counter(), time.thread_time()
        recognizer.recognize([text])
        processor.append(1000 * (time.thread_time() - used))
        clock.append(1000 * (time.perf_counter() - began))
    return {
        "best": round(min(clock), 1),
        "median": round(statistics.median(clock), 1),
        "processor": round(statistics.median(processor), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.dlp.entities", description=__doc__)
    parser.add_argument("truth", type=Path)
    parser.add_argument("--folds", type=Path, help="folder with the models of the cross-validation")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()

    shipped = EmbeddedRecognizer()
    figures: dict[str, Any] = {"latency_ms": latency(shipped)}
    for name in PLAIN_SETS:
        figures[name] = score(arguments.truth / f"{name}.jsonl.gz", {-1: shipped}, (*NAMES, "address"))
    if arguments.folds:
        held_out: dict[int, Recognizer] = {
            fold: EmbeddedRecognizer(folder)
            for fold in range(FOLDS)
            if (folder := arguments.folds / f"fold-{fold}").is_dir()
        }
        folds = folds_of([example for name in TRAINED_SETS for example in load(arguments.truth, name)])
        for name in TRAINED_SETS:
            figures[name] = score(arguments.truth / f"{name}.jsonl.gz", held_out, NAMES, folds)
    for name, parts in figures.items():
        print(f"{name}  goal {GOALS.get(name, '-')}  floor {FLOORS.get(name, '-')}")
        for kind, part in parts.items():
            print(f"    {kind:14} {part}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
