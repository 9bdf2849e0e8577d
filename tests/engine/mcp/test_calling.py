"""Policy rules about calls of tools, approvals, and budgets, with ports that the test controls (docs/mcp.md)."""

import asyncio
import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.support.engine import TENANT, EngineHarness, completion
from tests.support.mcp_engine import ask, call, returns, server_record

from gatehouse.engine.exchange import CallRequest
from gatehouse.engine.ports import NoMeter
from gatehouse.engine.stages.calls.tool_rules import MAX_ARGUMENT_BYTES
from gatehouse.foundation.errors import TooManyRequests
from gatehouse.policy.budgets import CallAmounts
from gatehouse.policy.governance import GovernanceRecords, PolicyRuleRecord

APPROVALS = {"human_in_loop": True}


def harness_with(
    *rules: tuple[str, Any], flags: dict[str, bool] | None = None, approved: bool = False
) -> EngineHarness:
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
        # A condition that fails is treated as true for BLOCK.
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
    rules = [('mcp.tool == "send"', "REQUIRE_APPROVAL")] if by != "tool" else []
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
    rules = [('mcp.tool == "send"', "REQUIRE_APPROVAL")] if by == "rule" else []
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


class OneBudget:
    """A budget of a number of calls. Implements the port `Spend`."""

    periods: tuple[tuple[UUID, int], ...] = ((TENANT, 1_000),)

    def __init__(self, left: int) -> None:
        self.left = left
        self.open_reservations = 0

    def headers(self) -> dict[str, str]:
        return {"X-Budget-Remaining-Requests": str(self.left)}

    def exhausted(self, budgets: Any) -> None:
        raise AssertionError("lists cost nothing")

    async def reserve(self, budgets: Any, taking: CallAmounts, **_: Any) -> "OneBudget":
        assert taking == CallAmounts(requests=1)
        if self.left == 0:
            raise TooManyRequests
        self.left -= 1
        self.open_reservations += 1
        return self

    def settle(self, reserved: Any, spent: CallAmounts | None) -> None:
        self.open_reservations -= 1
        if spent is None:
            self.left += 1
        else:
            assert spent == CallAmounts(requests=1)


def with_budget(left: int, *rules: tuple[str, Any], **options: Any) -> tuple[EngineHarness, OneBudget]:
    harness = harness_with(*rules, **options)
    budget = OneBudget(left)
    harness.ports.spend = budget  # type: ignore[assignment]
    return harness, budget


async def test_a_budget_of_calls_refuses_the_next_call_and_no_list() -> None:
    harness, budget = with_budget(2)
    for _ in range(2):
        returns(harness)
        answer, _ = await call(harness, "mail__send")
        assert answer.status == 200
    assert answer.headers["X-Budget-Remaining-Requests"] == "0"
    assert (await outcome(harness))[0] == 429
    assert [entry.budgets for entry in harness.tool_calls] == [((str(TENANT), 1_000),)] * 2 + [()]
    assert (len(harness.outbound.sent), budget.open_reservations) == (2, 0)
    assert (await ask(harness, "tools/list"))[0].status == 200


async def test_a_call_counts_if_it_was_sent() -> None:
    harness, budget = with_budget(5, ('mcp.arguments.to == "eve"', "BLOCK"))
    assert (await outcome(harness, to="eve"))[0] == 403
    assert budget.left == 5
    harness.outbound.script = [(500, [b"{}"])]
    answer, _ = await call(harness, "mail__send")
    assert (answer.status, budget.left) == (403, 5)
    harness.outbound.script = [(500, [b"{}"])]
    answer, _ = await call(harness, "mail__send", to="bob")
    # The server may have done what was asked.
    assert (answer.status, budget.left, harness.tool_calls[-1].budgets != ()) == (502, 4, True)
    harness.good = False
    answer, _ = await call(harness, "mail__send", to="bob")
    assert (answer.status, budget.left, harness.tool_calls[-1].budgets) == (401, 4, ())
    assert budget.open_reservations == 0


async def test_a_call_that_is_cancelled_after_it_was_sent_counts() -> None:
    harness, budget = with_budget(5)
    returns(harness)
    harness.stop.at = "reading"
    task = asyncio.create_task(call(harness, "mail__send"))
    await harness.stop.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (budget.left, budget.open_reservations) == (4, 0)
    assert [(entry.outcome, len(entry.budgets)) for entry in harness.tool_calls] == [("cancelled", 1)]


async def test_calls_are_counted_by_outcome() -> None:
    counted: list[tuple[str, bool]] = []

    class Meter(NoMeter):
        def tool_called(self, x: CallRequest | None, outcome: str, upstream_seconds: float | None) -> None:
            counted.append((outcome, upstream_seconds is not None))

    harness = harness_with(('mcp.arguments.to == "eve"', "BLOCK"))
    harness.ports.meter = Meter()
    await outcome(harness, to="bob")
    await outcome(harness, to="eve")
    harness.outbound.script = [(500, [b"{}"])]
    await call(harness, "mail__send", to="bob")
    assert counted == [("success", True), ("refused", False), ("error", True)]
