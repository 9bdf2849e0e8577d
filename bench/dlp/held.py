"""Measures how much of a stream is held back, and the time on one core: `python -m bench.dlp.held --truth FOLDER`.

It prints the mean and the maximum number of characters that are held back after each piece, for prose, code and chat in
pieces of several lengths. It also prints the processor microseconds per KB, as the minimum of several rounds.
"""

import argparse
from pathlib import Path
from time import process_time

from bench.dlp.speed import TEXTS, read

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.matcher import Matcher
from gatehouse.detection.scanning.windows import Scanner

PIECES = (4, 20, 160)
CHARACTERS = 30_000
ROUNDS = 5


def waiting_characters(matcher: Matcher, text: str, piece: int) -> list[int]:
    """Return the number of characters that are held back after each piece."""
    scanner = Scanner((matcher,))
    waiting = []
    for place in range(0, len(text), piece):
        scanner.push(text[place : place + piece])
        _, released = scanner.advance(final=False)
        waiting.append(min(place + piece, len(text)) - released)
    scanner.advance(final=True)
    return waiting


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth", type=Path, required=True, help="the folder of the labelled texts")
    arguments = parser.parse_args()
    matcher = Matcher(BUILT_IN)
    print(f"{'':8}{'pieces of':>10}{'mean held':>12}{'most':>8}{'us a KB':>10}")
    for name, file in TEXTS.items():
        text = read(arguments.truth, file)[:CHARACTERS]
        for piece in PIECES:
            least = 1e9
            waiting: list[int] = []
            for _ in range(ROUNDS):
                started = process_time()
                waiting = waiting_characters(matcher, text, piece)
                least = min(least, process_time() - started)
            mean = sum(waiting) / len(waiting)
            print(f"{name:8}{piece:>10}{mean:>12.1f}{max(waiting):>8}{least / len(text) * 1024e6:>10.0f}")


if __name__ == "__main__":
    main()
