"""Runs all quality measurements of detection, one after the other: `python -m bench.dlp TRUTH/dev [--folds FOLDER]`.

TRUTH/dev contains the labelled texts. `--folds` is a folder with the models of the cross-validation, which
`training.entities` writes. Without `--folds`, the data sets that the entity model was trained on are not scored.
"""

import argparse
import subprocess
import sys


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("truth")
    parser.add_argument("--folds")
    arguments = parser.parse_args()
    folds = ["--folds", arguments.folds] if arguments.folds else []
    failed = 0
    for module, module_arguments in (
        ("quality", ["--truth", arguments.truth]),
        ("evasion", ["--truth", arguments.truth]),
        ("ordinary.measure", ["--part", "held-out"]),
        ("ordinary.measure", ["--part", "held-out-2"]),
        ("entities", [arguments.truth, *folds]),
        ("semantic", [arguments.truth]),
    ):
        print(f"\n== {module}", flush=True)
        failed |= subprocess.run(
            [sys.executable, "-m", f"bench.dlp.{module}", *module_arguments], check=False
        ).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
