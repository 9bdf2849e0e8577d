"""The built-in patterns find values in base64 and hexadecimal that are shifted, wrapped, encoded twice or not ASCII,
and in quoted-printable. They find nothing in similar text that is not encoded."""

import random
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from uuid import UUID

import pytest

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.matcher import Matcher
from gatehouse.detection.normalise import View, decoded

BUILT = Matcher(BUILT_IN)
VALUES = {
    "credit-card": "4242 4242 4242 4242",
    "iban": "DE89 3704 0044 0532 0130 00",
    "email": "anna.schmidt@example.com",
    "aws-access-key": "AKIA7QHWZ4NPX2LVKDRE",
}
LOREM = "Lorem ipsum dolor sit amet consectetur elit. "


def base64(data: bytes) -> str:
    return b64encode(data).decode()


def wrapped(text: str, columns: int, end: str) -> str:
    return end.join(text[place : place + columns] for place in range(0, len(text), columns))


def segment_texts(text: str, source: str) -> list[str]:
    return [text[finding.start : finding.end] for finding in BUILT.scan(text) if finding.source == source]


def in_contexts(encoded: str) -> list[str]:
    return [
        encoded,
        f"the value: {encoded} it is",
        f"{'some words. ' * 800}value: {encoded} it is{' and so on.' * 400}",
    ]


QUOTED: dict[str, Callable[[str], str]] = {
    "everything": lambda value: "".join(f"={byte:02X}" for byte in value.encode()),
    "separators": lambda value: (
        value[:-2].replace(" ", "=20").replace("@", "=40") + f"={ord(value[-2]):02X}" + value[-1]
    ),
    "a soft line break": lambda value: value[:10] + "=\n" + value[10:],
    "a soft line break with CR and blanks": lambda value: value[:10] + "= \r\n" + value[10:],
    "soft line breaks within": lambda value: "".join(f"={byte:02X}=\n" for byte in value.encode()),
}


#: Texts that quoted-printable changes only at equals signs.
UNCHANGED = {("separators", source) for source, value in VALUES.items() if not {" ", "@"} & set(value)}


@pytest.mark.parametrize(
    ("name", "source"), [(name, source) for name in QUOTED for source in VALUES if (name, source) not in UNCHANGED]
)
def test_values_in_quoted_printable_are_found(name: str, source: str) -> None:
    quote = QUOTED[name]
    for text in in_contexts("Gr=C3=BC=C3=9Fe, " + quote(VALUES[source])):
        assert any(quote(VALUES[source]).startswith(item[:20]) for item in segment_texts(text, source)), text[:80]


def test_letters_of_quoted_printable_are_read() -> None:
    [view] = decoded.decoded_views(View("Gr=C3=BC=C3=\n=9Fe und Gr=FC=DFe"))
    assert view.text == "Grüße und Grüße"


@pytest.mark.parametrize(
    "text",
    [
        "limit=20&page=2024&size=40",
        "SECRET_KEY=\nDATABASE_URL=\nPORT=",
        "value =\n    other(12)",
        "h1:z5CRVTTTmAJ677TzLLGU+0bjPO0LkuOLi4/5GtJWs/s=\ngithub.com/some/module v1.2.3",
        "colour=FF",
        "where a=10 and b=20",
    ],
)
def test_equals_signs_in_code_are_not_quoted_printable(text: str) -> None:
    assert decoded.candidates(text) == []


BEGINNINGS = {
    "nothing in UTF-16": ("", "utf-16"),
    "nothing in UTF-16, low bytes first": ("", "utf-16-le"),
    "nothing in UTF-16, high bytes first": ("", "utf-16-be"),
    "words in UTF-16": ("Die Größe: ", "utf-16"),
    "Cyrillic in UTF-16, high bytes first": ("Номер карты: ", "utf-16-be"),
    "Chinese in UTF-16, low bytes first": ("我的卡号是 ", "utf-16-le"),
    "Windows-1252": ("Größe ", "cp1252"),
    "Windows-1252 at the beginning": ("Überweisung für Jörg ", "cp1252"),
    "UTF-8": ("ärger ", "utf-8"),
    "a byte order mark of UTF-8": ("", "utf-8-sig"),
    "Cyrillic": ("Номер карты: ", "utf-8"),
    "Chinese": ("我的卡号是 ", "utf-8"),
    "Cyrillic in Windows-1251": ("Номер карты: ", "cp1251"),
}
ENCODE: dict[str, Callable[[bytes], str]] = {"base64": base64, "hex": bytes.hex}


@pytest.mark.parametrize("source", VALUES)
@pytest.mark.parametrize("encode", ENCODE.values(), ids=ENCODE.keys())
@pytest.mark.parametrize(("beginning", "encoding"), BEGINNINGS.values(), ids=BEGINNINGS.keys())
def test_values_after_text_that_is_not_ascii_are_found(
    source: str, encode: Callable[[bytes], str], beginning: str, encoding: str
) -> None:
    encoded = encode((beginning + VALUES[source]).encode(encoding))
    for text in in_contexts(encoded):
        [value] = segment_texts(text, source)
        assert encoded.endswith(value)
        # The letters of Windows-1251 are not read as text, and a slash ends the text before a segment.
        assert encoding in {"cp1251", "utf-8-sig"} or value == encoded


@pytest.mark.parametrize("high_first", [False, True])
def test_letters_of_utf_16_and_windows_1252_are_read(*, high_first: bool) -> None:
    wide = "Größe: Номер 4242 4242 我的"
    data = b"\xfe\xff" + wide.encode("utf-16-be") if high_first else b"\xff\xfe" + wide.encode("utf-16-le")
    for encode in ENCODE.values():
        assert decoded.decoded_views(View(encode(data)))[0].text == wide
        assert (
            decoded.decoded_views(View(encode("ärgere Größen und immer wieder andere".encode("cp1252"))))[0].text
            == "ärgere Größen und immer wieder andere"
        )


@pytest.mark.parametrize("source", VALUES)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("before", ["A", "Ab", "xY3", "/9j/4", "a", "ab", "abc"])
def test_values_in_shifted_segments_are_found(source: str, encoding: str, before: str) -> None:
    for encode in ENCODE.values():
        encoded = before + encode(VALUES[source].encode(encoding))
        for text in in_contexts(encoded):
            [value] = segment_texts(text, source)
            assert encoded.endswith(value)


@pytest.mark.parametrize("source", VALUES)
@pytest.mark.parametrize("cut", range(1, 6))
def test_values_in_segments_whose_beginning_is_cut_off_are_found(source: str, cut: int) -> None:
    for encode in ENCODE.values():
        encoded = encode(f"number {VALUES[source]} is it".encode())[cut:]
        for text in in_contexts(encoded):
            assert segment_texts(text, source) == [encoded]


@pytest.mark.parametrize("source", VALUES)
@pytest.mark.parametrize("columns", [60, 64, 76])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n  "])
def test_values_in_wrapped_segments_are_found(source: str, columns: int, end: str) -> None:
    for encode in ENCODE.values():
        for size in (20, 40, 47, 3000):
            data = ((LOREM * 80)[:size] + f" {VALUES[source]} " + LOREM * 2).encode()
            encoded = wrapped(encode(data), columns, end)
            for text in in_contexts(encoded):
                assert len(segment_texts(text, source)) == 1


def test_a_value_of_a_wrapped_segment_is_redacted_with_all_that_encodes_it() -> None:
    encoded = wrapped(base64(f"{LOREM}{VALUES['credit-card']} {LOREM}".encode()), 64, "\r\n")
    assert segment_texts(f"see:\r\n{encoded}\r\nend", "credit-card") == [encoded]


@pytest.mark.parametrize("source", VALUES)
def test_values_that_are_encoded_twice_are_found(source: str) -> None:
    value = VALUES[source].encode()
    for encoded in (
        base64(base64(value).encode()),
        base64(value.hex().encode()),
        base64(value).encode().hex(),
        base64(f"key: {base64(value)} it is".encode()),
        "".join(f"%{byte:02X}" for byte in base64(value).encode()),
    ):
        for text in in_contexts(encoded):
            assert segment_texts(text, source) == [encoded]
    lines = wrapped(base64((LOREM * 9).encode() + value + b" " + (LOREM * 9).encode()), 76, "\n")
    assert len(segment_texts(wrapped(base64(lines.encode()), 76, "\n"), source)) == 1


def test_a_value_that_looks_encoded_itself_is_found_in_a_segment() -> None:
    encoded = base64(b"4242424242424242")
    assert segment_texts(f"card {encoded}", "credit-card") == [encoded]


RANDOM = random.Random(20)
TOKENS = {
    "base64": base64(RANDOM.randbytes(150_000)),
    "base64 in lines": wrapped(base64(RANDOM.randbytes(150_000)), 76, "\n"),
    "hex": RANDOM.randbytes(100_000).hex(),
    "hashes": "\n".join(RANDOM.randbytes(32).hex() for _ in range(3000)),
    "UUIDs": "\n".join(str(UUID(bytes=RANDOM.randbytes(16))) for _ in range(3000)),
    "a picture": "data:image/png;base64," + base64(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + RANDOM.randbytes(100_000)),
}


@pytest.mark.parametrize("text", TOKENS.values(), ids=TOKENS.keys())
def test_decoding_random_text_finds_nothing(text: str) -> None:
    assert BUILT.scan(text) == BUILT.scan(text, decoded=False)


def characters_decoded(monkeypatch: pytest.MonkeyPatch, text: str) -> int:
    count = 0

    def counted(decode: Callable[[str], bytes]) -> Callable[[str], bytes]:
        def counting(digits: str) -> bytes:
            nonlocal count
            count += len(digits)
            return decode(digits)

        return counting

    with monkeypatch.context() as patch:
        patch.setattr(decoded, "_KINDS", [kind._replace(decode=counted(kind.decode)) for kind in decoded._KINDS])
        decoded.decoded_views(View(text))
    return count


def test_little_of_random_text_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in TOKENS.values():
        assert characters_decoded(monkeypatch, text) < len(text) // 2


HOSTILE = {
    "text in UTF-16": base64(("é4242 " * 5000).encode("utf-16")),
    "text that is shifted": "A" + base64(b"4242 4242 " * 4000),
    "text and bytes in turn": "A" + base64((b"4242 4242 4242 42" + b"\x00\x80\xff") * 2500),
    "hex that is shifted": "a" + ("é" + "4242 4242 " * 4000).encode().hex(),
    "zeros": "A" * 60_000,
    "zeros of hex": "0034" * 15_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_the_decoded_amount_of_hostile_text_is_in_proportion_to_its_size(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    half = characters_decoded(monkeypatch, text[: len(text) // 2])
    assert characters_decoded(monkeypatch, text) <= 2.5 * half + 1000
    assert half < 64 * len(text)


def test_a_json_web_token_is_found_as_one() -> None:
    parts = (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"1234567890","name":"Anna"}', RANDOM.randbytes(33))
    token = ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
    text = f"use {token} now"
    assert token in {text[finding.start : finding.end] for finding in BUILT.scan(text) if "jwt" in finding.source}
