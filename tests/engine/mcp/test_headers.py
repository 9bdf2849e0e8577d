"""Headers that repeat values of a message (docs/mcp.md)."""

import sys
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatehouse.engine.mcp.headers import (
    InvalidAnnotation,
    annotated_parameters,
    parameter_headers,
    read_value,
    without_annotations,
    write_value,
)


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("us-west1", "us-west1"),
        ("a b\tc", "a b\tc"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("", "=?base64??="),
    ],
)
def test_the_examples_of_the_protocol(value: str, header: str) -> None:
    assert write_value(value) == header
    assert read_value(header) == value


@given(st.text())
def test_every_text_is_encoded_for_a_header_and_decoded_again(value: str) -> None:
    header = write_value(value)
    assert read_value(header) == value.encode(errors="replace").decode()
    assert all(" " <= character <= "~" or character == "\t" for character in header)


def test_invalid_base64_is_not_a_value() -> None:
    assert read_value("=?base64?!?=") is None
    assert read_value("=?base64?/w==?=") is None


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_parameters_are_read_at_the_path_of_their_property() -> None:
    definition = schema(
        region={"type": "string", "x-mcp-header": "Region"},
        place=schema(zip={"type": "integer", "x-mcp-header": "Zip"}),
        dry={"type": "boolean", "x-mcp-header": "Dry"},
        plain={"type": "string"},
        # A property may have the name of the annotation.
        **{"x-mcp-header": {"type": "string"}},
    )
    arguments = {"region": "eu", "place": {"zip": 42}, "dry": False, "plain": "x", "x-mcp-header": "y"}
    headers = {"Mcp-Param-Region": "eu", "Mcp-Param-Zip": "42", "Mcp-Param-Dry": "false"}
    assert parameter_headers(definition, arguments) == headers
    assert parameter_headers(definition, {"region": None, "place": "x"}) == {}
    stripped = without_annotations(definition)
    assert stripped["properties"]["region"] == {"type": "string"}
    assert stripped["properties"]["x-mcp-header"] == {"type": "string"}
    assert annotated_parameters(stripped) == {}


@pytest.mark.parametrize("value", [1.5, [1], {"a": 1}, 2**53, "x" * 5_000])
def test_a_value_that_no_header_can_have_is_an_error(value: Any) -> None:
    with pytest.raises(ValueError, match="a"):
        parameter_headers(schema(a={"type": "string", "x-mcp-header": "A"}), {"a": value})


@pytest.mark.parametrize(
    "definition",
    [
        schema(a={"type": "string", "x-mcp-header": ""}),
        schema(a={"type": "string", "x-mcp-header": "A B"}),
        schema(a={"type": "string", "x-mcp-header": "A\r\nB"}),
        schema(a={"type": "string", "x-mcp-header": 1}),
        schema(a={"type": "number", "x-mcp-header": "A"}),
        schema(a={"x-mcp-header": "A"}),
        schema(a={"type": ["string", "null"], "x-mcp-header": "A"}),
        schema(a={"type": {}, "x-mcp-header": "A"}),
        schema(a={"type": "string", "x-mcp-header": "A"}, b={"type": "string", "x-mcp-header": "a"}),
        schema(a={"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}),
        schema(a={"anyOf": [{"type": "string", "x-mcp-header": "A"}]}),
        {**schema(), "$defs": {"a": {"type": "string", "x-mcp-header": "A"}}},
        {**schema(), "x-mcp-header": "A"},
        schema(**{f"p{number}": {"type": "string", "x-mcp-header": f"H{number}"} for number in range(33)}),
    ],
)
def test_annotations_that_the_protocol_forbids_are_refused(definition: dict[str, Any]) -> None:
    with pytest.raises(InvalidAnnotation):
        annotated_parameters(definition)


def test_annotations_beyond_the_limit_are_not_compared_with_each_other() -> None:
    properties = {f"p{number}": {"type": "string", "x-mcp-header": f"N{number}"} for number in range(10_000)}
    calls: Counter[str] = Counter()
    sys.setprofile(lambda _, event, function: calls.update([function.__name__] if event == "c_call" else []))
    try:
        with pytest.raises(InvalidAnnotation, match="more than"):
            annotated_parameters({"type": "object", "properties": properties})
    finally:
        sys.setprofile(None)
    assert calls["lower"] < 2_000
