"""Measures how many values are still found when they are disguised: `python -m bench.dlp.evasion --truth FOLDER`.

The texts with values from `a_presidio` and `a_gitleaks` are scanned unchanged, and with each evasion applied to the
value. The recall is the share of the values found in the unchanged text that are also found with the evasion, as the
same entity type.
"""

import argparse
import base64
import codecs
import gzip
import html
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.findings import Finding
from gatehouse.detection.matcher import Matcher
from gatehouse.detection.normalise import LOOKALIKES
from gatehouse.detection.scanning import texts

SETS = ("a_presidio", "a_gitleaks")
GOAL = 0.95


class Value(NamedTuple):
    text: str
    start: int
    end: int


def between(mark: str, *, every: int = 1) -> Callable[[str], str]:
    def evade(value: str) -> str:
        return "".join(c + (mark if i % every == every - 1 and i < len(value) - 1 else "") for i, c in enumerate(value))

    return evade


def instead(table: dict[str, str]) -> Callable[[str], str]:
    return lambda value: value.translate(str.maketrans(table))


def digits(zero: int) -> dict[str, str]:
    return {str(digit): chr(zero + digit) for digit in range(10)}


def lookalikes(first: int, last: int) -> dict[str, str]:
    return {latin: letter for letter, latin in LOOKALIKES.items() if first <= ord(letter) < last}


def broken(value: str) -> str:
    middle = len(value) // 2
    return f"{value[:middle]}\n{value[middle:]}"


FULL_WIDTH = {chr(c): chr(c + 0xFEE0) for c in range(0x21, 0x7F)}
MATHEMATICAL = (
    digits(0x1D7CE)
    | {chr(65 + i): chr(0x1D400 + i) for i in range(26)}
    | {chr(97 + i): chr(0x1D41A + i) for i in range(26)}
)

EVASIONS: dict[str, Callable[[str], str]] = {
    "zero-width space": between("\u200b"),
    "zero-width non-joiner": between("\u200c"),
    "zero-width joiner": between("\u200d", every=3),
    "word joiner": between("\u2060", every=2),
    "byte order mark": between("\ufeff", every=4),
    "soft hyphen": between("\u00ad", every=2),
    "bidi controls": lambda value: "\u202d" + between("\u2066")(value) + "\u202c",
    "combining marks": between("\u0301"),
    "variation selectors": between("\ufe0e"),
    "full width": instead(FULL_WIDTH),
    "Arabic-Indic digits": instead(digits(0x0660)),
    "Devanagari digits": instead(digits(0x0966)),
    "mathematical letters and digits": instead(MATHEMATICAL),
    "Cyrillic look-alikes": instead(lookalikes(0x400, 0x530)),
    "Greek look-alikes": instead(lookalikes(0x370, 0x400)),
    "non-breaking hyphens": instead({"-": "\u2011"}),
    "en dashes, thin and non-breaking blanks": instead({"-": "\u2013", " ": "\u00a0", ".": "\u2024"}),
    "line break within": broken,
    "decimal entities": lambda value: "".join(f"&#{ord(c)};" for c in value),
    "hexadecimal entities": lambda value: "".join(f"&#x{ord(c):x};" for c in value),
    "URL encoding": lambda value: "".join(f"%{byte:02X}" for byte in value.encode()),
    "hex": lambda value: value.encode().hex(),
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "url-safe base64": lambda value: base64.urlsafe_b64encode(value.encode()).decode().rstrip("="),
    "tag characters": lambda value: "".join(chr(0xE0000 + ord(c)) if c.isascii() else c for c in value),
    "spaced": between(" "),
    "dotted": between("."),
    "reversed": lambda value: value[::-1],
    "rot13": lambda value: codecs.encode(value, "rot13"),
}


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    plain = folder / f"{name}.jsonl"
    text = plain.read_text() if plain.exists() else gzip.decompress((folder / f"{name}.jsonl.gz").read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def values(folder: Path, name: str) -> list[Value]:
    return [
        Value(row["text"], row["start"], row["end"])
        for row in rows(folder, name)
        if row["is_positive"] and row["start"] is not None and row["strength"] == "strong"
    ]


class Scan:
    def __init__(self) -> None:
        self._matchers = (Matcher(BUILT_IN),)
        self._thresholds = {pattern.id: pattern.threshold for pattern in BUILT_IN}

    def types(self, text: str, start: int, end: int) -> set[str]:
        """Return the entity types of the findings that count at the place of a value."""

        def counts(finding: Finding) -> bool:
            return finding.score >= self._thresholds[finding.source] and finding.start < end and start < finding.end

        return {finding.entity_type for finding in filter(counts, texts.scan(self._matchers, text))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth", type=Path, required=True, help="the folder of the labelled texts")
    parser.add_argument("--missed", metavar="EVASION", help="show what is missed under it")
    arguments = parser.parse_args()
    scan = Scan()
    print(f"{'evasion':42}" + "".join(f"{name:>14}" for name in SETS))
    plain = {
        name: [(value, result) for value in values(arguments.truth, name) if (result := scan.types(*value))]
        for name in SETS
    }
    print(f"{'(values found plainly)':42}" + "".join(f"{len(plain[name]):>14}" for name in SETS))
    worst = 1.0
    for evasion, evade in EVASIONS.items():
        line = f"{html.unescape(evasion):42}"
        for name in SETS:
            kept = 0
            for (text, start, end), types in plain[name]:
                hidden = evade(text[start:end])
                result = scan.types(text[:start] + hidden + text[end:], start, start + len(hidden)) & types
                kept += bool(result)
                if not result and arguments.missed == evasion:
                    print(f"  {sorted(types)} {text[start:end]!r} -> {hidden!r} in {text!r}"[:300])
            recall = kept / len(plain[name])
            worst = min(worst, recall)
            line += f"{recall:>13.3f}{' ' if recall >= GOAL else '!'}"
        print(line)
    print(f"worst {worst:.3f}, goal {GOAL}")
    sys.exit(worst < GOAL)


if __name__ == "__main__":
    main()
