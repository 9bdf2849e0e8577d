"""Lists of tools: names, pages, work (docs/mcp.md)."""

import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from functools import partial
from types import FrameType, SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from gatehouse.engine.mcp import listing
from gatehouse.engine.mcp.definitions import read_definition
from gatehouse.engine.mcp.errors import InvalidParams
from gatehouse.engine.mcp.listing import MAX_PAGE_BYTES, MAX_PAGE_TOOLS, callable_tools, full_name, split_name
from gatehouse.foundation.identity import Caller, CallerKind, TenantId
from gatehouse.policy.mcp import (
    McpAccessRecord,
    McpServer,
    McpServerRecord,
    McpToolRecord,
    McpUserOAuthRecord,
    compile_mcp_servers,
)

page = partial(listing.page, has_approvals=True)

USER = uuid4()
CALLER = Caller(kind=CallerKind.USER, tenant_id=TenantId(uuid4()), user_id=USER)


def server(name: str, tools: Iterable[str], description: str = "Searches.", **fields: Any) -> McpServerRecord:
    records = []
    for tool in tools:
        definition = read_definition({"name": tool, "description": description, "inputSchema": {"name": tool}})
        records.append(McpToolRecord(id=uuid4(), name=tool, hash=definition.hash, definition=definition.text))
    fields = {"access": "open", **fields}
    return McpServerRecord(id=uuid4(), name=name, url="", revision="", tools=tuple(records), **fields)


def stopping(*ids: UUID) -> Any:
    return SimpleNamespace(mcp_stopped=lambda *others: not set(ids).isdisjoint(others))


def compiled(*records: McpServerRecord) -> list[McpServer]:
    return list(compile_mcp_servers(records).values())


def pages(servers: list[McpServer], switches: Any = None, *, has_full_names: bool = True) -> list[list[str]]:
    """Return the names on all pages."""
    names, cursor = [], None
    while True:
        result = page(servers, CALLER, switches or stopping(), cursor, has_full_names=has_full_names)
        names.append([tool["name"] for tool in msgspec.json.decode(result["tools"])])
        cursor = result.get("nextCursor")
        if cursor is None:
            return names


def test_the_name_of_the_server_is_added_to_the_name_of_the_tool_alone() -> None:
    servers = compiled(server("b", ["one"]), server("a", ["two", "__x", "o__n"]))
    assert pages(servers) == [["a____x", "a__o__n", "a__two", "b__one"]]
    (tool, *_) = msgspec.json.decode(page(servers[1:], CALLER, stopping(), None, has_full_names=True)["tools"])
    assert tool == {"name": "b__one", "description": "Searches.", "inputSchema": {"name": "one"}}
    assert pages(servers[1:], has_full_names=False) == [["one"]]


def test_the_name_alone_is_replaced_where_it_occurs_more_than_once() -> None:
    tool = {
        "name": "one",
        "title": '"name":"one"',
        "description": '{"name":"one"}',
        "inputSchema": {"name": "one", "properties": {"name": {"const": "one"}}},
        "annotations": {"name": "one"},
    }
    for described in (tool, {**tool, "inputSchema": {}, "annotations": {}}):
        definition = read_definition(described)
        record = McpToolRecord(id=uuid4(), name="one", hash=definition.hash, definition=definition.text)
        servers = compiled(McpServerRecord(id=uuid4(), name="a", url="", revision="", access="open", tools=(record,)))
        (listed,) = msgspec.json.decode(page(servers, CALLER, stopping(), None, has_full_names=True)["tools"])
        assert listed == {**described, "name": "a__one"}


@pytest.mark.parametrize("tool", ["a", "_a", "__a", "a__b", "b__a", "a_", "__"])
@pytest.mark.parametrize("name", ["a", "a-b", "b", "a--b"])
def test_a_name_is_split_into_what_it_was_joined_of(name: str, tool: str) -> None:
    assert split_name(full_name(name, tool)) == (name, tool)


def test_a_name_that_would_be_too_long_is_not_listed() -> None:
    servers = compiled(server("a" * 60, ["x" * 66, "y" * 67]))
    assert pages(servers) == [["a" * 60 + "__" + "x" * 66]]
    assert pages(servers, has_full_names=False) == [["x" * 66, "y" * 67]]


def test_pages_are_bounded_by_number_and_together_have_all_tools() -> None:
    records = [server(f"s{number:03}", [f"t{tool:03}" for tool in range(700)]) for number in range(3)]
    every = [f"{record.name}__{tool.name}" for record in records for tool in record.tools]
    parts = pages(compiled(*records))
    assert [len(part) for part in parts] == [MAX_PAGE_TOOLS, MAX_PAGE_TOOLS, 100]
    assert [name for part in parts for name in part] == every


def test_pages_are_bounded_by_size() -> None:
    servers = compiled(server("a", [f"t{number:03}" for number in range(200)], "ж" * 30_000))
    result = page(servers, CALLER, stopping(), None, has_full_names=True)
    assert MAX_PAGE_BYTES < len(bytes(result["tools"])) < MAX_PAGE_BYTES + 64 * 1024 + 200
    assert sum(map(len, pages(servers))) == 200


def test_a_page_continues_after_a_tool_that_was_removed() -> None:
    before = compiled(server("a", ["one", "two"]), server("b", ["x"]))
    cursor = urlsafe_b64encode(b"a__one").decode()
    after = compiled(server("a", ["two"]), server("b", ["x"]))
    for servers, names in ((before, ["a__two", "b__x"]), (after, ["a__two", "b__x"]), (after[1:], ["b__x"])):
        result = page(servers, CALLER, stopping(), cursor, has_full_names=True)
        assert [tool["name"] for tool in msgspec.json.decode(result["tools"])] == names


@pytest.mark.parametrize(
    "cursor", ["", "x", "\u00e4", 1, [], "YQ==", urlsafe_b64encode(b"\xff__a").decode(), "a" * 600]
)
def test_other_cursors_are_refused(cursor: Any) -> None:
    with pytest.raises(InvalidParams):
        page(compiled(server("a", ["one"])), CALLER, stopping(), cursor, has_full_names=True)


def test_tools_without_access_and_switched_off_ones_are_not_listed() -> None:
    def rule(access_type: Any, tool: str | None) -> McpAccessRecord:
        return McpAccessRecord(subject_type="user", subject_id=USER, access_type=access_type, tool=tool)

    records = [
        server("closed", ["x"], access="restricted"),
        server("denied", ["x"], rules=(rule("DENY", None),)),
        server("one", ["x", "y"], access="restricted", rules=(rule("ALLOW", "y"), rule("ALLOW", "gone"))),
        server("open", ["x", "y"], rules=(rule("DENY", "y"),)),
        server("stopped", ["x"]),
        server("z", ["x", "y"]),
    ]
    assert pages(compiled(*records), stopping(records[4].id, records[5].tools[0].id)) == [["one__y", "open__x", "z__y"]]


def test_a_server_with_accounts_of_users_lists_nothing_for_a_caller_without_a_user() -> None:
    oauth = McpUserOAuthRecord(client_id="c", authorization_url="https://a", token_url="https://a", sealed_secret=None)
    servers = compiled(server("a", ["x"], user_oauth=oauth), server("b", ["x"]))
    client = Caller(kind=CallerKind.OAUTH_CLIENT, tenant_id=CALLER.tenant_id, client_id=uuid4())
    for caller, names in ((CALLER, ["a", "b"]), (client, ["b"])):
        listed = callable_tools(servers, caller, stopping(), has_approvals=True)
        assert [entry.record.name for entry, _ in listed] == names


@pytest.mark.parametrize(("has_full_names", "most_calls_per_tool"), [(False, 6), (True, 12)])
def test_a_tool_costs_few_calls_of_functions(has_full_names: bool, most_calls_per_tool: int) -> None:
    servers = compiled(server("a", [f"tool-{number:03}" for number in range(1_000)]))
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        result = page(servers, CALLER, stopping(), None, has_full_names=has_full_names)
    finally:
        sys.setprofile(None)
    assert len(msgspec.json.decode(result["tools"])) == 1_000
    assert 1_000 < calls < most_calls_per_tool * 1_000
