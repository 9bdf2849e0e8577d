"""Runs all quality measurements of detection, one after the other: `python -m bench.dlp TRUTH/dev [--folds FOLDER]`.

TRUTH/dev contains the labelled texts. `--folds` is a folder with the models of the cross-validation, which
`training.entities` writes. Without it, the sets that the entities tier was trained on are left out.
"""

import argparse
import subprocess
import sys


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("truth")
    parser.add_argument("--folds")
    chosen = parser.parse_args()
    folds = ["--folds", chosen.folds] if chosen.folds else []
    failed = 0
    for module, arguments in (
        ("quality", ["--truth", chosen.truth]),
        ("evasion", ["--truth", chosen.truth]),
        ("ordinary.measure", ["--part", "held-out"]),
        ("ordinary.measure", ["--part", "second"]),
        ("entities", [chosen.truth, *folds]),
        ("semantic", [chosen.truth]),
    ):
        print(f"\n== {module}", flush=True)
        failed |= subprocess.run([sys.executable, "-m", f"bench.dlp.{module}", *arguments], check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
