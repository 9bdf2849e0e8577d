"""Requests to MCP servers have the same results on the platform and on an outpost: the same bytes to agent and server,
and the same records. The test uses random servers, access rules, kill switches, policies and arguments."""

import asyncio
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.parity.hosts import (
    KEY_ID,
    SEALER,
    TENANT,
    USER,
    State,
    host_engine,
    outpost_ports,
    platform_ports,
    tool_results,
)
from tests.parity.test_parity import GOVERNANCE, GROUPS, TEXTS
from tests.support.engine import EngineHarness
from tests.support.mcp_engine import returns

from gatehouse.engine.mcp.definitions import read_definition
from gatehouse.engine.ports import Ports
from gatehouse.platform.live.ports import sealing_context
from gatehouse.policy.catalog import TenantRecords
from gatehouse.policy.governance import PolicyRuleRecord
from gatehouse.policy.mcp import McpAccessRecord, McpServerRecord, McpToolRecord, mcp_secret_key

HEADER = {"Authorization": "Bearer of-the-server-0001"}
TOOLS = ("add", "echo")
SUBJECTS = (*(("group", group) for group in GROUPS), ("user", USER), ("api_key", KEY_ID), ("user", UUID(int=99)))


def tool_of(server: int, number: int, *, approval_required: bool) -> McpToolRecord:
    name = TOOLS[number]
    definition = read_definition({"name": name, "description": f"{name}.", "inputSchema": {"type": "object"}})
    return McpToolRecord(
        id=UUID(int=300 + 10 * server + number), name=name, hash=definition.hash, definition=definition.text,
        approval_required=approval_required,
    )  # fmt: skip


def sealed_header(server_id: UUID) -> str:
    context = sealing_context(TENANT, mcp_secret_key(server_id))
    return SEALER.seal(msgspec.json.encode(HEADER), context=context)


def servers(number: int, name: str) -> st.SearchStrategy[McpServerRecord]:
    server_id = UUID(int=200 + number)
    return st.builds(
        McpServerRecord, id=st.just(server_id), name=st.just(name), url=st.just(f"https://{name}.test/mcp"),
        revision=st.just("2026-07-28"), access=st.sampled_from(["open", "open", "restricted"]),
        sealed_header=st.just(sealed_header(server_id) if name == "one" else None),
        tools=st.tuples(*(
            st.builds(
                tool_of, st.just(number), st.just(tool), approval_required=st.sampled_from([False, False, False, True])
            )
            for tool in range(len(TOOLS))
        )),
        rules=st.lists(
            st.builds(
                lambda subject, access, tool: McpAccessRecord(
                    subject_type=subject[0], subject_id=subject[1], access_type=access, tool=tool
                ),
                st.sampled_from(SUBJECTS), st.sampled_from(["ALLOW", "ALLOW", "DENY"]), st.sampled_from([None, *TOOLS]),
            ),
            max_size=3,
        ).map(tuple),
    )  # fmt: skip


RULES = st.lists(
    st.builds(
        PolicyRuleRecord, id=st.uuids(), name=st.just("r"), priority=st.integers(1, 9),
        condition=st.sampled_from(
            ['mcp.tool == "add"', 'mcp.server == "two"', '"zanzibar" in mcp.arguments.words', '"email" in dlp.entities']
        ),
        action=st.sampled_from(["BLOCK", "LOG", "REQUIRE_APPROVAL"]),
    ),
    max_size=2,
).map(tuple)  # fmt: skip


class Case(msgspec.Struct, frozen=True):
    records: TenantRecords
    groups: tuple[UUID, ...]
    switched_off: frozenset[UUID]
    path: str
    tool: str
    arguments: dict[str, Any]
    result: str


RECORDS = st.builds(
    lambda one, two, governance, rules, flags: TenantRecords(
        tenant_id=TENANT, revision=7, mcp_servers=(one, two), feature_flags=flags,
        governance=msgspec.structs.replace(governance, policy_rules=rules),
    ),
    servers(1, "one"), servers(2, "two"), GOVERNANCE, RULES,
    st.dictionaries(st.sampled_from(["dlp_enabled", "human_in_loop"]), st.booleans(), max_size=2),
)  # fmt: skip
CASES = st.builds(
    Case,
    records=RECORDS,
    groups=st.lists(st.sampled_from(GROUPS), unique=True, max_size=3).map(tuple),
    switched_off=st.frozensets(st.sampled_from([UUID(int=number) for number in (201, 202, 310, 311, 320)]), max_size=1),
    path=st.sampled_from(["/mcp", "/mcp/one", "/mcp/two", "/mcp/none"]),
    tool=st.sampled_from([*TOOLS, "none"]),
    arguments=st.builds(lambda text: {"text": text, "words": text.split()}, TEXTS),
    result=TEXTS,
)


@pytest.fixture(autouse=True)
def outposts_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the environment in which the outpost has the credential that the platform has in its database."""
    monkeypatch.setenv("MCP_SERVER_ONE_HEADER", f"Authorization: {HEADER['Authorization']}")


async def verdicts(ports: Ports, harness: EngineHarness, case: Case) -> list[dict[str, Any]]:
    """Return the results of a list and of a call on one host."""
    engine = host_engine(ports, harness)
    name = f"one__{case.tool}" if case.path == "/mcp" else case.tool
    harness.outbound.script = []
    returns(harness, case.result)
    return [
        await tool_results(engine, harness, case.path, "tools/list", {}),
        await tool_results(engine, harness, case.path, "tools/call", {"name": name, "arguments": case.arguments}),
    ]


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(case=CASES)
def test_both_hosts_give_the_same_verdict_about_tools(case: Case) -> None:
    async def both() -> None:
        harness = EngineHarness()
        base = harness.ports
        state = State(case.records, case.groups, case.switched_off)
        on_platform = await verdicts(platform_ports(state, base), harness, case)
        async for ports in outpost_ports(state, base):
            assert await verdicts(ports, harness, case) == on_platform

    asyncio.run(both())
