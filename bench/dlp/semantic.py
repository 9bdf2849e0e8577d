"""Measures the quality and the speed of the semantic tier.

    .venv/bin/python -m bench.dlp.semantic TRUTH/dev [--cache vectors.pkl] [--json figures.json] [--predictions p.jsonl]

TRUTH/dev contains labelled texts: `c_semantic.jsonl`, and the training sets (`training/semantic/sets.py`). The training
sets are evaluated by cross-validation in five folds: a row is scored by a classifier that was trained without the fold
of the row. Near duplicates are in the same fold (`training/semantic/near_duplicates.py`). The shipped classifier scores
all other rows. It was not trained on them. A label is assigned if its score is 0.5 or more.

For an attack, any of the attack labels is a correct result. For a topic, the label with the best score must be the
expected one. A text out of scope must get no label. With --predictions, the labels and scores of each text are written
to a file, for evaluation by another program.
"""

import argparse
import collections
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from training.entities.folds import FOLDS
from training.semantic.__main__ import made_up, ordinary
from training.semantic.corpus import attacks as injections
from training.semantic.windowed import CachedBackbone, Reader

from gatehouse.detection.semantic.backbone import Backbone
from gatehouse.detection.semantic.embedded import DATA, EmbeddedClassifier
from gatehouse.detection.semantic.zero_shot import known_labels
from training.semantic import attack_heads, sets, topic_head

ATTACKS = {"jailbreak", "prompt_injection", "system_prompt_extraction"}
MIN_PROBABILITY = 0.5
GOALS = {"attacks F1": 0.92, "maximum share of false alarms": 0.03, "topics": 0.92}
#: the text of a zero-shot label for each domain that one short text can describe
LABEL_TEXTS = {
    "banking": "bank accounts: balances, transfers and bills",
    "credit_cards": "credit cards",
    "travel": "travel: flights, hotels and trips",
    "kitchen_and_dining": "food: cooking, recipes and restaurants",
    "cars_and_commuting": "cars: driving, fuel, repairs and traffic",
}


@dataclass(frozen=True)
class Scored:
    row: dict[str, Any]
    scores: dict[str, float]

    @property
    def attack(self) -> bool:
        return any(self.scores.get(label, 0) >= MIN_PROBABILITY for label in sets.CLASSES)

    @property
    def topic(self) -> str:
        """Return the domain with the best score, or `out_of_scope` if the score is below the threshold."""
        domains = {label: self.scores[label] for label in topic_head.LABELS.values() if label in self.scores}
        best = max(domains, key=lambda label: domains[label])
        return best if domains[best] >= MIN_PROBABILITY else topic_head.OUT_OF_SCOPE

    @property
    def expected_topic(self) -> str:
        return topic_head.LABELS[self.row["label"].removeprefix("topic:")]


def fold_classifiers(truth: Path, folds: dict[str, int], backbone: Backbone, folder: Path) -> list[EmbeddedClassifier]:
    """Return one classifier per fold. The parts that are not trained on groups of rows (zero-shot) are copied from
    the shipped classifier."""
    reader = Reader(backbone)
    shipped = dict(np.load(DATA / "heads.npz", allow_pickle=False))
    made, licensed = made_up(truth), sets.licensed(truth)
    utterances, prose = topic_head.utterances(truth), ordinary(truth)
    results = []
    for fold in range(FOLDS):
        attacks = attack_heads.train(reader, [*made, *(one for one in licensed if folds.get(one.group) != fold)])
        topics = topic_head.train(reader, [one for one in utterances if folds[one.group] != fold], prose)
        path = folder / f"fold-{fold}.npz"
        np.savez(path, **shipped | attacks | topics)
        results.append(EmbeddedClassifier(heads=path, backbone=backbone))
    return results


def attacks(scored: Sequence[Scored]) -> dict[str, Any]:
    judged = [one for one in scored if one.row["label"] in ATTACKS]
    positive = [one for one in judged if one.row["is_positive"]]
    negative = [one for one in judged if not one.row["is_positive"]]
    hits, alarms = sum(one.attack for one in positive), sum(one.attack for one in negative)
    precision, recall = hits / max(hits + alarms, 1), hits / len(positive)
    return {
        "precision": round(precision, 4),
        "recall": round(recall, 4),
        "F1": round(2 * precision * recall / max(precision + recall, 1e-9), 4),
        "found": _shares(positive, lambda one: one.row["source"]),
        "false alarms": _shares(negative, lambda one: one.row["source"]),
        "BIPIA by kind": _shares(
            [one for one in positive if one.row["source"] == "bipia"], lambda one: one.row["note"].rpartition("; ")[2]
        ),
        "NotInject by language": _shares(
            [one for one in negative if one.row["source"] == "notinject"],
            lambda one: "English" if one.row["lang"] == "en" else "other",
        ),
        "harmful requests that got an attack label (not in the figures above)": _shares(
            [one for one in scored if one.row["label"] == "harmful_request"], lambda one: one.row["source"]
        ),
        "utterances called attacks": _shares(
            [one for one in scored if one.row["label"].startswith("topic:")], lambda one: one.row["source"]
        ),
        "label given, by label": _confusion(judged),
    }


def _plain(row: dict[str, Any]) -> bool:
    return row["source"] == "bipia" and row["note"].endswith(sets.PLAIN_KINDS)


def _shares(scored: Sequence[Scored], key: Callable[[Scored], str]) -> dict[str, str]:
    counts: dict[str, list[bool]] = collections.defaultdict(list)
    for one in scored:
        counts[key(one)].append(one.attack)
    return {name: f"{np.mean(results):.3f} of {len(results)}" for name, results in sorted(counts.items())}


def _confusion(judged: Sequence[Scored]) -> dict[str, dict[str, int]]:
    table: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for one in judged:
        detected_labels = [label for label in sets.CLASSES if one.scores[label] >= MIN_PROBABILITY]
        name = one.row["label"] if one.row["is_positive"] else "harmless"
        table[name][" and ".join(detected_labels) or "nothing"] += 1
    return {name: dict(counts) for name, counts in table.items()}


def topics(scored: Sequence[Scored], folds: dict[str, int]) -> dict[str, Any]:
    """Return the figures for topics. `folds` maps the group of a text to the fold in which it was held out."""
    judged = [one for one in scored if one.row["label"].startswith("topic:")]
    table: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for one in judged:
        table[one.expected_topic][one.topic] += 1
    within = [one for one in judged if one.expected_topic != topic_head.OUT_OF_SCOPE]
    return {
        "accuracy": round(statistics.mean(one.topic == one.expected_topic for one in judged), 4),
        "of texts with a topic": round(statistics.mean(one.topic == one.expected_topic for one in within), 4),
        "by fold": [
            round(
                statistics.mean(one.topic == one.expected_topic for one in judged if folds[one.row["group"]] == fold), 4
            )
            for fold in range(FOLDS)
        ],
        "by label": {
            name: f"{counts[name] / counts.total():.3f} of {counts.total()}" for name, counts in table.items()
        },
        "confusion": {name: dict(counts.most_common()) for name, counts in sorted(table.items())},
    }


def documents(shipped: EmbeddedClassifier, truth: Path) -> dict[str, str]:
    """Score real prose with and without a made-up injection. The injections are made from the templates of the
    training texts. The result shows whether an injection is found in a long text, not whether unknown injections are
    found."""
    random = Random(99)
    paragraphs = sets.carriers(truth, random)
    makers: dict[str, Callable[[], str]] = {
        "paragraphs": lambda: next(paragraphs),
        "documents": lambda: sets.document(paragraphs, random),
    }
    results = {}
    for name, maker in makers.items():
        clean = [maker() for _ in range(150)]
        buried = [injections.buried(random, maker()) for _ in range(150)]
        for kind, texts in (("with an injection", buried), ("clean", clean)):
            scores = shipped.classify(texts, sets.CLASSES)
            share = statistics.mean(max(one.values()) >= MIN_PROBABILITY for one in scores)
            results[f"{name} {kind}, called attacks"] = f"{share:.3f} of {len(texts)}"
    return results


def zero_shot(shipped: EmbeddedClassifier, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Measure the zero-shot labels on the utterances: how often a known label is given although no utterance has it,
    and how well a domain is found from the words of its label alone."""
    labels = [*known_labels(DATA), *LABEL_TEXTS.values()]
    scores = shipped.classify([row["text"] for row in rows], labels)
    domains = [topic_head.LABELS[row["label"].removeprefix("topic:")] for row in rows]
    scores_of_label = {label: np.array([score[label] for score in scores]) for label in labels}
    return {
        "share of utterances that get the label": {
            label: round(float((scores_of_label[label] >= MIN_PROBABILITY).mean()), 4) for label in known_labels(DATA)
        },
        "zero-shot domains": {
            words: _zero_shot_figures(scores_of_label[words], np.array([item == domain for item in domains]))
            for domain, words in LABEL_TEXTS.items()
        },
    }


def _zero_shot_figures(scores: Any, right: Any) -> dict[str, float]:
    """Return the figures of a score. `auc` is the probability that a text of the domain scores higher than a text of
    another domain."""
    order = scores.argsort().argsort() + 1
    yes = int(right.sum())
    auc = (order[right].sum() - yes * (yes + 1) / 2) / (yes * (len(scores) - yes))
    result = scores >= MIN_PROBABILITY
    return {
        "auc": round(float(auc), 3),
        "found": round(float(result[right].mean()), 3),
        "share of other texts that get the label": round(float(result[~right].mean()), 3),
    }


def latency(classifier: EmbeddedClassifier) -> dict[str, str]:
    """Return the latency by number of words, in milliseconds. It is measured as CPU time of this thread, which other
    work on the machine affects less than elapsed time."""
    prose = (
        "Yesterday the committee met in the old library to talk about the budget for the coming year, and whether the "
        "roof can be mended before the winter. Several members asked for a second offer, since the first seemed high. "
    )
    words = prose.split()
    results = {}
    for count, runs in ((100, 60), (1000, 15), (20_000, 5), (200_000, 5)):
        text = " ".join(words[number % len(words)] for number in range(count))
        times = []
        for _ in range(runs):
            began = time.thread_time()
            classifier.classify([text], classifier.labels)
            times.append(1000 * (time.thread_time() - began))
        results[f"{count} words"] = f"median {statistics.median(times):.1f}, best {min(times):.1f}"
    return results


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.dlp.semantic", description=__doc__)
    parser.add_argument("truth", type=Path)
    parser.add_argument("--cache", type=Path, help="where embeddings are kept between runs")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--predictions", type=Path)
    arguments = parser.parse_args()

    rows = sets.rows(arguments.truth / "c_semantic.jsonl")
    backbone = CachedBackbone(DATA, arguments.cache)
    shipped = EmbeddedClassifier(backbone=backbone)
    folds = sets.folds(arguments.truth)
    with tempfile.TemporaryDirectory() as folder:
        held_out = fold_classifiers(arguments.truth, folds, backbone, Path(folder))
    backbone.keep()
    scored = []
    for row in rows:
        classifier = held_out[folds[row["group"]]] if row["source"] in sets.SOURCES else shipped
        scored.append(Scored(row, classifier.classify([row["text"]], classifier.labels)[0]))
    figures = {
        "held out": "Rows of the training sets: cross-validation, near duplicates in the same fold. All other rows:"
        " the shipped classifier, which was not trained on them.",
        "goals": GOALS,
        "attacks": attacks(scored),
        "attacks F1, without the BIPIA rows whose injected request is harmless": attacks(
            [one for one in scored if not _plain(one.row)]
        )["F1"],
        "topics": topics(scored, folds),
        "injections in prose": documents(shipped, arguments.truth),
        "zero-shot": zero_shot(shipped, [row for row in rows if row["source"] == "clinc-oos"]),
        "milliseconds of processor": latency(EmbeddedClassifier()),
        "bytes": sum(path.stat().st_size for path in DATA.iterdir()),
    }
    backbone.keep()
    print(json.dumps(figures, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    if arguments.predictions:
        clinc = {ours: theirs for theirs, ours in topic_head.LABELS.items()}
        with arguments.predictions.open("w", encoding="utf-8") as file:
            for one in scored:
                labels = [label for label in sets.CLASSES if one.scores[label] >= MIN_PROBABILITY]
                prediction = {
                    "id": one.row["id"],
                    "labels": [*labels, f"topic:{clinc[one.topic]}"],
                    "scores": one.scores,
                }
                print(json.dumps(prediction), file=file)


if __name__ == "__main__":
    main()
