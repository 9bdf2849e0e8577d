"""Measures the time of the pattern tier on one core: `python bench/dlp/speed.py --truth FOLDER`.

All built-in patterns and 100 patterns of an organization scan prose, code and chat, including normalisation and decoded
views. For each text and length, it prints the median time over several sections of the text, and the times of other
ways to search for the same patterns. Then hostile texts of two lengths are scanned.
"""

import argparse
import gzip
import json
import random
import string
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import re2

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.custom import custom_shape
from gatehouse.detection.matcher import Matcher
from gatehouse.detection.pattern import Pattern
from gatehouse.detection.scanning import texts
from gatehouse.detection.scanning.windows import Scanner
from gatehouse.detection.search import matching

TEXTS = {"prose": "a_clean_text", "code": "a_clean_code", "chat": "b_presidio_research"}
LENGTHS = (1_000, 10_000, 100_000)
GOALS = dict(zip(LENGTHS, (60, 500, 5_000), strict=True))


def custom() -> list[Pattern]:
    """Return patterns like those of customers: project names, internal numbers, and hosts."""
    rnd = random.Random(7)
    words = ["apollo", "zeus", "falcon", "orion", "phoenix", "atlas", "neon", "cobalt", "quartz", "onyx"]
    patterns = []
    for number in range(100):
        word = rnd.choice(words)
        regex = rnd.choice(
            [
                rf"\b{word[:3].upper()}-\d{{{rnd.randint(4, 8)}}}\b",
                rf"(?i)\bproject\s+{word}{number}\b",
                rf"\b{word[:4].upper()}{number}[A-Z0-9]{{6}}\b",
                rf"(?i)\b{word} (?:internal|confidential)\b",
                rf"\bEMP{number}\d{{5}}\b",
                rf"\b\d{{3}}-{word[:2].upper()}-\d+\b",
                rf"(?i)\b[\w-]+\.{word}\.corp\b",
            ]
        )
        shape = custom_shape(regex, score=1.0)
        patterns.append(
            Pattern(
                id=f"own-{number}", name="", entity_type="own", category="secret", action="redact", threshold=0.5,
                shapes=(shape,),
            )
        )  # fmt: skip
    return patterns


def hostile() -> dict[str, str]:
    rnd = random.Random(1)
    length = 200_000

    def of(letters: str) -> str:
        return "".join(rnd.choices(letters, k=length))

    return {
        "letters and digits": of(string.ascii_letters + string.digits),
        "digits and signs": of(string.digits + " -./"),
        "capitals and digits": of(string.ascii_uppercase + string.digits + "  "),
        "1.1.1.": "1.1." * (length // 4),
        "one line of 1": "1" * length,
        "a column of numbers": "1234567\n" * (length // 8),
        "keywords": " ".join(
            rnd.choices(["password", "token", "AKIA", "eyJ", "sk-", "://", "key =", "@"], k=length // 6)
        ),
        "entities": "&#49;" * (length // 5),
        "base64": "NDExMSAx" * (length // 8),
        "zero width": "1\u200b" * (length // 2),
        "look-alikes": "\u04101\u0441 " * (length // 4),
        "PEM openings": "-----BEGIN PRIVATE KEY-----" * (length // 27),
    }


def best(work: Callable[[], object], seconds: float = 0.2) -> float:
    """Return the minimum processor time of many calls, in microseconds."""
    least, until = 1e9, perf_counter() + seconds
    while perf_counter() < until:
        started = process_time()
        work()
        least = min(least, process_time() - started)
    return least * 1e6


def slices(matchers: tuple[Matcher, ...], text: str, *, decoded: bool = True, times: int = 60) -> list[float]:
    """Return the seconds of each slice of a scan, as the minimum of many scans. The minimum reduces the effect of other
    work on the machine."""
    least: dict[int, float] = {}
    for _ in range(times):
        parts = texts.scan_in_slices(matchers, text, decoded=decoded)
        for number in count():
            started = process_time()
            if next(parts, None) is None:
                break
            least[number] = min(least.get(number, 1e9), process_time() - started)
    return list(least.values())


def read(folder: Path, name: str) -> str:
    plain = folder / f"{name}.jsonl"
    data = plain.read_bytes() if plain.exists() else gzip.decompress((folder / f"{name}.jsonl.gz").read_bytes())
    return "\n\n".join(dict.fromkeys(json.loads(line)["text"] for line in data.splitlines()))


def samples(whole: str, length: int) -> list[str]:
    """Return texts of this length from several places in `whole`."""
    whole *= length // len(whole) + 1
    times = max(1, min(9, len(whole) // length))
    return [whole[start : start + length] for start in range(0, times * (len(whole) // times), len(whole) // times)]


def streamed(matchers: tuple[Matcher, ...], text: str, piece: int = 16) -> None:
    scanner = Scanner(matchers)
    for start in range(0, len(text), piece):
        scanner.push(text[start : start + piece])
        scanner.advance(final=False)
    scanner.advance(final=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth", type=Path, required=True, help="the folder of the labelled texts")
    arguments = parser.parse_args()
    started = perf_counter()
    built = Matcher(BUILT_IN)
    print(f"{len(BUILT_IN)} built-in patterns compiled in {(perf_counter() - started) * 1e3:.0f} ms")
    started = perf_counter()
    own = custom()
    matchers = (built, Matcher(own))
    print(f"{len(own)} of an organization checked and compiled in {(perf_counter() - started) * 1e3:.0f} ms\n")
    shapes = [shape for pattern in (*BUILT_IN, *own) for shape in matching.compile_pattern(pattern)]
    literals = re2.Filter()
    for shape in shapes:
        literals.Add(shape.regex.pattern)
    literals.Compile()

    def find_all(text: str) -> None:
        for shape in shapes:
            for _ in shape.regex.finditer(text):
                pass

    def filtered(text: str) -> None:
        for place in literals._filter.Match(text.encode(), True):
            for _ in shapes[place].regex.finditer(text):
                pass

    print(
        f"{'microseconds':22}{'goal':>8}{'scan':>9}{'no views':>10}{'stream of 16':>14}{'Filter':>10}{'each RE2':>10}"
    )
    ways: tuple[Callable[[str], float], ...] = (
        lambda text: sum(slices(matchers, text)) * 1e6,
        lambda text: sum(slices(matchers, text, decoded=False)) * 1e6,
        lambda text: best(lambda: streamed(matchers, text)),
        lambda text: best(lambda: filtered(text)),
        lambda text: best(lambda: find_all(text)),
    )
    for name, file in TEXTS.items():
        whole = read(arguments.truth, file)
        for length in LENGTHS:
            sections = samples(whole, length)
            figures = [median(map(way, sections)) for way in ways]
            columns = "".join(
                f"{figure:{width}.0f}" for figure, width in zip(figures, (9, 10, 14, 10, 10), strict=True)
            )
            print(f"{name:10}{length:>10,}  {GOALS[length]:>8}{columns}")
    print(f"\n{'hostile texts, us per KB':28}{'25 KB':>10}{'200 KB':>10}{'slowest slice, ms':>20}")
    for name, text in hostile().items():
        short, long = text[:25_000], text
        slowest = max(slices(matchers, long, times=4))
        per_kilobyte = [best(lambda: texts.scan(matchers, part), 0.1) / len(part) * 1e3 for part in (short, long)]  # noqa: B023
        print(f"{name:28}{per_kilobyte[0]:>10.0f}{per_kilobyte[1]:>10.0f}{slowest * 1e3:>20.1f}")


if __name__ == "__main__":
    main()
