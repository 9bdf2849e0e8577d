"""Trains the heads of the semantic tier and writes `heads.npz` and `background.json`.

    python -m training.semantic --truth TRUTH/dev [--cache embeddings.pkl] [--out src/gatehouse/detection/semantic/data]

It needs only the dependencies of the product. `model.onnx` and `tokenizer.json` must already be in the folder
(`training/semantic/convert.py`). The same seed, machine and libraries give the same weights.
"""

import argparse
from pathlib import Path
from random import Random

import numpy as np

from training.semantic import attack_heads, sets, topic_head, zero_shot_data
from training.semantic.windowed import CachedBackbone, Reader

OUT = Path(__file__).resolve().parents[2] / "src/gatehouse/detection/semantic/data"
SEED = 1
ATTACKS, HARMLESS, ORDINARY = 5000, 12_000, 400
#: Number of attacks and of harmless texts with `--classes`. These texts were tried, but are not used for the shipped
#: heads (docs/dlp-semantic.md).
BY_CLASSES = 4500, 5500


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training.semantic", description=__doc__)
    parser.add_argument("--truth", type=Path, required=True, help="folder with c_semantic.jsonl.gz and the like")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--cache", type=Path, help="where embeddings are kept between runs")
    parser.add_argument("--classes", action="store_true", help="also on attacks written by their classes")
    arguments = parser.parse_args()

    backbone = CachedBackbone(arguments.out, arguments.cache)
    reader = Reader(backbone)
    made = made_up(arguments.truth)
    if arguments.classes:
        made += sets.of_classes(arguments.truth, SEED + 1, *BY_CLASSES)
    attacks = attack_heads.train(reader, [*made, *sets.licensed(arguments.truth)])
    utterances = topic_head.utterances(arguments.truth)
    topics = topic_head.train(reader, utterances, ordinary(arguments.truth))
    background = zero_shot_data.background(Random(SEED))
    zero_shot = zero_shot_data.arrays(reader, arguments.out, background, [one.text for one in utterances[::20]])
    np.savez_compressed(arguments.out / "heads.npz", **attacks, **topics, **zero_shot)
    backbone.keep()


def made_up(truth: Path) -> list[sets.Example]:
    return sets.made_up(truth, SEED, ATTACKS, HARMLESS)


def ordinary(truth: Path) -> list[str]:
    """Return prose of no domain, for the topics head."""
    paragraphs = sets.carriers(truth, Random(SEED))
    return [next(paragraphs) for _ in range(ORDINARY)]


if __name__ == "__main__":
    main()
