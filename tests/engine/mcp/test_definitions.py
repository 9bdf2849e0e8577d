"""Tests of MCP tool definitions: validation, hash and differences (docs/mcp.md)."""

from typing import Any

import pytest

from gatehouse.engine.mcp.definitions import InvalidDefinition, differences, read_definition

TOOL: dict[str, Any] = {
    "name": "search",
    "description": "Searches.",
    "inputSchema": {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}},
}


def test_the_hash_depends_on_the_content_and_not_on_the_order_of_fields() -> None:
    first = read_definition(TOOL)
    properties = dict(reversed(TOOL["inputSchema"]["properties"].items()))
    reordered = dict(reversed({**TOOL, "inputSchema": {"properties": properties, "type": "object"}}.items()))
    assert read_definition(reordered) == first
    assert read_definition({**TOOL, "icons": [], "_meta": {}, "title": None}) == first
    changed = read_definition({**TOOL, "description": "Searches!"})
    assert changed.hash != first.hash


def test_differences_lists_changed_and_added_fields() -> None:
    first = read_definition(TOOL)
    changed = read_definition({**TOOL, "description": "Searches!"})
    (difference,) = differences(first.text, changed.text)
    assert (difference.field, difference.approved, difference.present) == ("description", "Searches.", "Searches!")
    added = read_definition({**TOOL, "annotations": {"destructiveHint": True}})
    (difference,) = differences(first.text, added.text)
    assert (difference.field, difference.approved) == ("annotations", None)


@pytest.mark.parametrize(
    "tool",
    [
        "search", {}, {**TOOL, "name": ""}, {**TOOL, "name": "x" * 129}, {**TOOL, "name": "a b"},
        {**TOOL, "name": "s\u0435arch"}, {**TOOL, "name": "a\n"}, {**TOOL, "inputSchema": None},
        {**TOOL, "inputSchema": []}, {**TOOL, "description": 1}, {**TOOL, "outputSchema": "x"},
        {**TOOL, "description": "x" * 65_536}, {**TOOL, "description": "a\0b"},
    ],
)  # fmt: skip
def test_invalid_definitions_are_refused(tool: Any) -> None:
    with pytest.raises(InvalidDefinition):
        read_definition(tool)


def test_a_schema_may_not_be_nested_deeply() -> None:
    schema: dict[str, Any] = {}
    for _ in range(120):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(InvalidDefinition, match="nested"):
        read_definition({**TOOL, "inputSchema": schema})
