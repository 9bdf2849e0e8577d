"""Policy rules about calls of tools, and approvals, with ports that the test controls (docs/mcp.md)."""

import json
from typing import Any
from uuid import uuid4

import pytest
from tests.support.engine import EngineHarness, completion
from tests.support.mcp_engine import call, returns, server_record

from gatehouse.engine.stages.calls.tool_rules import MAX_ARGUMENT_BYTES
from gatehouse.policy.governance import GovernanceRecords, PolicyRuleRecord

APPROVALS = {"human_in_loop": True}


def harness_with(*rules: tuple[str, Any], flags: dict[str, bool] | None = None, approved: bool = False) -> EngineHarness:
    """Return an engine with the server `mail`, whose tool `send` requires an approval if `approved` is set."""
    harness = EngineHarness()
    harness.mcp_servers = (server_record("mail", "send", "read", approved_by_person=("send",) if approved else ()),)
    records = tuple(
        PolicyRuleRecord(id=uuid4(), name=f"rule {n}", priority=n, condition=condition, action=action, terminal=True)
        for n, (condition, action) in enumerate(rules)
    )
    harness.governance = GovernanceRecords(policy_rules=records, governance_enabled=True)
    harness.flags = flags or {}
    return harness


async def outcome(harness: EngineHarness, **arguments: Any) -> tuple[int, str | None]:
    """Call `send`. Returns the status and the code of the error."""
    returns(harness)
    answer, body = await call(harness, "send", path="/mcp/mail", **arguments)
    return answer.status, body["error"]["data"]["code"] if "error" in body else None


VIOLATION = (403, "policy_violation")


@pytest.mark.parametrize(
    ("condition", "arguments", "expected"),
    [
        ('mcp.server == "mail" && mcp.tool == "send"', {}, VIOLATION),
        ('mcp.tool == "read"', {}, (200, None)),
        ('mcp.arguments.to == "bob"', {"to": "bob"}, VIOLATION),
        ('mcp.arguments.to == "bob"', {"to": "eve"}, (200, None)),
        # A condition that fails counts as true for BLOCK.
        ('mcp.arguments.to.startsWith("bob")', {}, VIOLATION),
        ('mcp.arguments.to.startsWith("bob")', {"to": 1}, VIOLATION),
        ("has(mcp.arguments.n) && mcp.arguments.n > 5", {"n": 10**30}, VIOLATION),
        ("has(mcp.arguments.n) && mcp.arguments.n > 5", {"n": 4.5}, (200, None)),
        ('"x" in mcp.arguments.deep.list', {"deep": {"list": ["x", {"a": None}]}}, VIOLATION),
        ('mcp.tool == "send" && user.kind == "api_key" && ip == "192.0.2.1" && time.getFullYear() > 0', {}, VIOLATION),
    ],
)
async def test_rules_read_server_tool_and_arguments(
    condition: str, arguments: dict[str, Any], expected: tuple[int, str | None]
) -> None:
    harness = harness_with((condition, "BLOCK"))
    assert await outcome(harness, **arguments) == expected
    assert len(harness.outbound.sent) == (expected[0] == 200)
    (entry,) = harness.tool_calls
    assert [event.model for event in entry.rule_events] == ["mcp:mail/send"] * (expected[0] != 200)


async def test_rules_of_models_do_not_apply_to_tools_nor_the_reverse() -> None:
    harness = harness_with(("true", "BLOCK"), ('model != ""', "BLOCK"))
    assert await outcome(harness) == (200, None)
    harness = harness_with(('mcp.tool != ""', "BLOCK"))
    harness.serve("one", "m")
    harness.outbound.script = [(200, [completion()])]
    body = {"model": "one/m", "messages": [{"role": "user", "content": "a"}]}
    assert (await harness.engine.answer(harness.request(body))).status == 200


async def test_arguments_that_cannot_be_evaluated_are_refused_if_a_rule_reads_them() -> None:
    large = "x" * MAX_ARGUMENT_BYTES
    for condition, status in (('mcp.tool == "read"', 200), ("has(mcp.arguments.a)", 403)):
        harness = harness_with((condition, "LOG"))
        assert (await outcome(harness, text=large))[0] == status
        assert (await outcome(harness_with((condition, "LOG")), text="x"))[0] == 200


@pytest.mark.parametrize("approves", [True, False])
@pytest.mark.parametrize("by", ["rule", "tool", "both"])
async def test_a_call_waits_for_one_approval(by: str, approves: bool) -> None:
    rules = [("mcp.tool == \"send\"", "REQUIRE_APPROVAL")] if by != "tool" else []
    harness = harness_with(*rules, flags=APPROVALS, approved=by != "rule")
    harness.approves = approves
    code = "tool_not_approved" if by == "tool" else "policy_violation"
    assert await outcome(harness) == ((200, None) if approves else (403, code))
    (question,) = harness.approval_questions
    assert question.direction == "input"
    (event,) = [event for event in harness.tool_calls[0].rule_events if event.result != "matched"]
    assert (event.kind, event.result) == (
        "mcp_tool" if by == "tool" else "policy_rule",
        "approved" if approves else "denied",
    )


@pytest.mark.parametrize("by", ["rule", "tool"])
async def test_without_approvals_a_call_that_requires_one_is_refused(by: str) -> None:
    rules = [("mcp.tool == \"send\"", "REQUIRE_APPROVAL")] if by == "rule" else []
    harness = harness_with(*rules, approved=by == "tool")
    assert (await outcome(harness))[0] == 403
    assert (harness.outbound.sent, harness.approval_questions) == ([], [])


async def test_a_block_needs_no_approval() -> None:
    harness = harness_with(('mcp.tool == "send"', "BLOCK"), flags=APPROVALS, approved=True)
    assert await outcome(harness) == VIOLATION
    assert harness.approval_questions == []


async def test_the_text_that_is_evaluated_is_that_which_is_sent() -> None:
    harness = harness_with(('mcp.arguments.to == "bob"', "LOG"))
    assert await outcome(harness, to="bob") == (200, None)
    assert json.loads(harness.outbound.sent[0].body)["params"]["arguments"] == {"to": "bob"}
