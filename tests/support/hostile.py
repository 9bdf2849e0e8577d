"""Hostile texts and bodies of any size, whose inspection should be slow."""

import base64
import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from gatehouse.detection.catalog import BUILT_IN

Text: TypeAlias = Callable[[int], str]
Body: TypeAlias = Callable[[int], dict[str, Any]]

CARD: Final = "4111 1111 1111 1111"
_PROSE: Final = "The harbour master of Rotterdam met the crew at nine, and nobody had slept well. "


def repeated(unit: str) -> Text:
    return lambda size: (unit * (size // len(unit.encode()) + 1))[: max(1, size * len(unit) // len(unit.encode()))]


def _encoded(encode: Callable[[bytes], bytes], unit: bytes) -> Text:
    def text(size: int) -> str:
        return encode(unit * (size // len(unit) + 1)).decode()[:size]

    return text


def _random_base64(size: int) -> str:
    return base64.b64encode(random.Random(0).randbytes(size * 3 // 4)).decode()


def _json_in_json(size: int) -> str:
    """Return JSON in JSON, with four levels. Each level doubles the backslashes of the level within it."""
    text = json.dumps([{"card": CARD}] * max(1, size // 160))
    for _ in range(3):
        text = json.dumps({"inner": text})
    return text


def _quoted_printable(size: int) -> str:
    unit = "".join(f"={byte:02X}" for byte in f"card {CARD}, ".encode()) + "=\n"
    return unit * (size // len(unit) + 1)


#: Return a text that consists of words.
of_prose: Final = repeated(_PROSE)

#: Hostile texts by their content.
TEXTS: Final[dict[str, Text]] = {
    "prose": repeated(_PROSE),
    "one digit": repeated("4"),
    "digits": repeated("4111111111111111"),
    "one letter": repeated("a"),
    "underscores": repeated("_"),
    "backslashes": repeated("\\"),
    "brackets": repeated("["),
    "braces": repeated("{"),
    "quotes": repeated('"'),
    "blanks": repeated(" "),
    "line breaks": repeated("\n"),
    "dots": repeated("."),
    "dashes": repeated("-"),
    "slashes": repeated("/"),
    "at signs": repeated("a@"),
    "colons": repeated("a:"),
    "equals signs": repeated("a="),
    "percents": repeated("%"),
    "ampersands": repeated("&#"),
    "cards": repeated(CARD + " "),
    "cards in lines": repeated(CARD + "\n"),
    "numbers that overlap": repeated("4111 1111 1111 1111 "),
    "numbers over lines": repeated("4111\n1111\n1111\n1111\n"),
    "dates and phones": repeated("+1 415 555 0132 1980-02-03 "),
    "characters apart": repeated("4 1 1 1 "),
    "letters apart": repeated("s.e.c.r.e.t."),
    "percent encoding": repeated("%34%31"),
    "quoted-printable": _quoted_printable,
    "soft line breaks": repeated("4111=\n 1111=\n"),
    "entities": repeated("&#52;&#x31;"),
    "escapes": repeated("\\u0034\\u0031"),
    "escaped backslashes": repeated('\\\\\\"4111 1111 1111 1111\\\\n'),
    "base64 of text": _encoded(base64.b64encode, f"{_PROSE}{CARD} ".encode()),
    "base64 of base64": _encoded(lambda data: base64.b64encode(base64.b64encode(data)), _PROSE.encode()),
    "base64 of chance": _random_base64,
    "base64 with dashes": repeated("SGVsbG8gd29ybGQsIGhlbGxvIHdvcmxk-/"),
    "base64 in pieces": repeated("SGVsbG8gd29ybGQsIGhlbGxvIHdvcmxk "),
    "base64 of hex": _encoded(lambda data: base64.b64encode(data.hex().encode()), f"{CARD} ".encode()),
    "base64 of UTF-16": _encoded(lambda data: base64.b64encode(data.decode().encode("utf-16-le")), _PROSE.encode()),
    "hex of text": _encoded(lambda data: data.hex().encode(), f"{_PROSE}{CARD} ".encode()),
    "hex in pieces": repeated("0x48656c6c6f20776f726c6421 "),
    "zero-width": repeated("\u200b"),
    "zero-width in a number": repeated("4\u200b1\u200b"),
    "bits": repeated("\u200b\u200c\u200b\u200b\u200c\u200c\u200b\u200c\u200b"),
    "tags": repeated("\U000e0041\U000e0042"),
    "selectors": repeated("\ufe01\ufe02\U000e0131"),
    "full-width": repeated("\uff14\uff11"),
    "look-alikes": repeated("\u0441\u0430rd "),
    "emoji": repeated("\U0001f3f4\u200d"),
    "labels": repeated("[CREDIT_CARD_1]"),
    "context words": repeated("card ssn iban "),
    "beginnings of context words": repeated("car cre ssnx iba passpor "),
    "context words and digits": repeated("card 4111 "),
    "backwards": repeated("1111 1111 1111 1114 moc.elpmaxe@bob "),
    "rot13": repeated("fx_yvir_NOPQRSTUVWXYZ0123456789 "),
    "JSON": lambda size: json.dumps([{"card": CARD}] * max(1, size // 32)),
    "JSON in JSON": _json_in_json,
    "JSON strings": lambda size: json.dumps([CARD] * max(1, size // 23)),
    "JSON of one string": lambda size: json.dumps((CARD + " ") * (size // 20 + 1)),
    "a long number in JSON": lambda size: "[" + "4111111111111111" * (size // 16) + "]",
    "addresses": repeated("http://a.example/"),
    "tags of HTML": repeated("<a"),
}


def near_matches() -> Iterator[tuple[str, Text]]:
    """Repetitions of an example of each built-in pattern, with and without a small error."""
    for pattern in BUILT_IN:
        if pattern.examples:
            example = pattern.examples[0]
            yield pattern.id, repeated(f"{example[:-2]} {example} ")
