"""Computes the quantised mean of the weights of several runs. It is better on unfamiliar texts than each run, and has
the same speed.

    python -m training.entities.average --out out/mean out/all out/plain out/fold-0 out/fold-1 ...

All runs begin with the same backbone, so that their weights are similar.
"""

import argparse
import shutil
from pathlib import Path

import torch

from training.entities.export import export
from training.entities.network import Network


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training.entities.average", description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="folders that python -m training.entities has written")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    states = [torch.load(run / "weights.pt") for run in arguments.runs]
    network = Network()
    network.load_state_dict({name: sum(state[name] for state in states) / len(states) for name in states[0]})
    arguments.out.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(arguments.runs[0] / "tokenizer.json", arguments.out / "tokenizer.json")
    export(network, arguments.out / "model.onnx")


if __name__ == "__main__":
    main()
