"""Views of decoded text, with the positions of the encoded text."""

import base64
from urllib.parse import quote

import pytest

from gatehouse.detection.normalise import seen
from gatehouse.detection.normalise.decoded import candidates, decoded_views
from gatehouse.detection.normalise.joined import breaks, joined

VALUE = "4111-1111-1111-1111"

ENCODED = {
    "decimal entities": "".join(f"&#{ord(c)};" for c in VALUE),
    "hexadecimal entities": "".join(f"&#x{ord(c):X};" for c in VALUE),
    "named entity": VALUE.replace("-", "&hyphen;"),
    "URL encoding of everything": "".join(f"%{ord(c):02X}" for c in VALUE),
    "URL encoding of the signs": quote(VALUE.replace("-", " "), safe=""),
    "hex": VALUE.encode().hex(),
    "hex with prefix": "0x" + VALUE.encode().hex(),
    "base64": base64.b64encode(VALUE.encode()).decode(),
    "base64 without padding": base64.b64encode(VALUE.encode()).decode().rstrip("="),
    "url-safe base64": base64.urlsafe_b64encode(VALUE.encode()).decode(),
    "base64 in a path": "/v1/" + base64.b64encode(VALUE.encode()).decode() + "/x",
}


@pytest.mark.parametrize("encoded", ENCODED.values(), ids=ENCODED.keys())
def test_encoded_values_are_read_and_lead_back_to_all_that_encodes_them(encoded: str) -> None:
    text = f"the card: {encoded} it is"
    [view] = decoded_views(seen(text, json_escapes=False))
    value = next(v for v in (VALUE, VALUE.replace("-", "\u2010"), VALUE.replace("-", " ")) if v in view.text)
    start = view.text.index(value)
    first, last = view.origin(start, start + len(value))
    assert text[first:last] == encoded.removeprefix("/v1/").removesuffix("/x")


@pytest.mark.parametrize(
    "text",
    [
        "international relationships notwithstanding",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "h1:z5CRVTTTmAJ677TzLLGU+0bjPO0LkuOLi4/5GtJWs/s=",
        "100% sure & well; 5 %",
        "/usr/local/lib/python3.11/site-packages",
    ],
)
def test_data_that_is_not_text_is_not_decoded(text: str) -> None:
    views = decoded_views(seen(text, json_escapes=False))
    assert all(view.text == text for view in views)


@pytest.mark.parametrize("encoded", ENCODED.values(), ids=ENCODED.keys())
def test_encoded_text_is_among_the_candidates(encoded: str) -> None:
    text = f"the card: {encoded} it is"
    decoded_candidates = candidates(text)
    assert decoded_candidates[0][0] >= len("the card: ")
    assert decoded_candidates[-1][1] <= len(text) - len(" it is")


@pytest.mark.parametrize(
    "text",
    [
        "Relationships between internationally acclaimed neighbourhoods were straightforward.",
        "def decoded_view(view: View) -> View | None: return SomeLongIdentifier.someOtherMethodOf(view, 100 % 7 & 3)",
        "/usr/local/lib/python3.11/site-packages/gatehouse/detection/normalise/decoded.py",
        "https://example.com/some/long-path/with_underscores?and=arguments",
        "commit da39a3ee5e6b4b0d3255bfef95601890afd80709",
    ],
)
def test_prose_and_code_have_no_candidates(text: str) -> None:
    assert candidates(text) == []


def test_a_segment_with_invisible_characters_is_a_candidate() -> None:
    text = "NDExMS0xMT\u200bExLTExMTEtMTExMQ=="
    assert candidates(text)


def test_of_a_long_segment_only_the_place_of_the_value_is_found() -> None:
    plain = "x" * 3000 + VALUE + "y" * 3000
    [view] = decoded_views(seen(base64.b64encode(plain.encode()).decode(), json_escapes=False))
    start = view.text.index(VALUE)
    first, last = view.origin(start, start + len(VALUE))
    assert 3990 <= first <= 4004
    assert last - first < 40


@pytest.mark.parametrize(
    ("text", "through"),
    [
        ("41111\n11111", "4111111111"),
        ("AKIA7\r\nQEXAMPLE", "AKIA7QEXAMPLE"),
        ("john.sm1\nith@example.com", "john.sm1ith@example.com"),
        ("a word\nand another", None),
        ("since 2019\nThe next line", None),
        ("on page\n42 of it", None),
    ],
)
def test_line_breaks_within_a_token_are_joined_and_others_are_not(text: str, through: str | None) -> None:
    view = seen(text, json_escapes=False)
    at = breaks(view)
    assert (joined(view, at)[0].text if at else None) == through
