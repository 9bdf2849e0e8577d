"""Reads the labelled texts from JSON lines. Each row is a labelled span or a negative text. Rows are grouped by
text."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    label: str | None
    category: str | None
    start: int
    end: int
    positive: bool
    #: whether the secret is only known to be somewhere in the span (`line` and `doc`)
    loose: bool
    #: false for rows that their source is unsure of; findings there are neither right nor wrong
    strong: bool
    #: for a negative text, what it does not contain: `label` (this label), `any` (any label of the category),
    #: `annotated` (any annotated label)
    scope: str | None


@dataclass
class Text:
    text: str
    group: str
    rows: list[Row] = field(default_factory=list)
    #: labels and categories that the source has searched for in this text, in addition to those of its rows
    labels: set[str] = field(default_factory=set)
    categories: set[str] = field(default_factory=set)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    written = path.read_bytes()
    for line in (gzip.decompress(written) if path.suffix == ".gz" else written).splitlines():
        yield json.loads(line)


def load(folder: Path, name: str, merges: dict[str, str]) -> dict[str, Text]:
    """Return the texts of the set `name` by id. Labels that are keys of `merges` are replaced by the values."""
    path = next(path for suffix in (".jsonl.gz", ".jsonl") if (path := folder / f"{name}{suffix}").exists())
    texts: dict[str, Text] = {}
    for line in lines(path):
        text = texts.setdefault(line["doc_id"], Text(line["text"], line["group"]))
        label = merges.get(line["label"], line["label"])
        text.rows.append(
            Row(
                label=label,
                category=line["category"],
                start=line["start"] or 0,
                end=line["end"] or 0,
                positive=line["is_positive"],
                loose=line["span_kind"] in {"line", "doc"},
                strong=line["strength"] == "strong",
                scope=line["neg_scope"],
            )
        )
        text.labels |= {merges.get(one, one) for one in [*(line.get("annotated") or ()), *([label] if label else ())]}
        text.categories |= {*(line.get("judged_categories") or ()), *([line["category"]] if line["category"] else ())}
    return texts
