"""A number that is a whole text and has a valid check digit is logged. It is redacted only if the organization opted
in.
"""

import json
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.support.engine import EngineHarness, completion
from tests.support.fast_engine import FastEngine

from gatehouse.detection.scanning.texts import scan
from gatehouse.detection.separator import SEPARATOR
from gatehouse.engine.dlp.decide import TierFindings, decide
from gatehouse.policy.dlp.compile import compile_dlp
from gatehouse.policy.governance import BundleRecord, DlpRuleRecord, GovernanceRecords

NPI = "1234567893"
GROUP = UUID(int=7)


def effect(text: str, **records: Any) -> str:
    policy, faults = compile_dlp(GovernanceRecords(**records), {})
    assert faults == []
    decision = decide(policy, TierFindings(scan(policy.matchers, text)), (GROUP,))
    return next(hit.effect for hit in decision.hits if hit.rule.entity_type == "us_npi")


def test_a_bare_number_is_logged_and_a_named_one_redacted() -> None:
    assert effect(NPI) == "log_only"
    assert effect(f"NPI {NPI}") == "redact"


OPT_INS = pytest.mark.parametrize(
    "records",
    [
        {"overrides": {GROUP: {"us_npi": "REDACT"}}},
        {"bundles": (BundleRecord(id=UUID(int=1), name="Health", entity_types=("us_npi",)),)},
        {"dlp_rules": (DlpRuleRecord(id="r", name="r", detector_type="regex", entity_type="us_npi", action="redact"),)},
    ],
    ids=["a group's override", "a bundle", "the organization's rule"],
)


@OPT_INS
def test_an_opted_in_organization_has_bare_numbers_redacted(records: dict[str, Any]) -> None:
    assert effect(NPI, **records) == "redact"


def test_the_trace_explains_why_the_number_is_only_logged() -> None:
    policy, _ = compile_dlp(GovernanceRecords(), {})
    trace: list[str] = []
    decide(policy, TierFindings(scan(policy.matchers, NPI)), (), trace)
    assert any("log_only (its action is redact from a score of 0.60 on)" in line for line in trace)


HI = {"role": "user", "content": "How many are there?"}
LONG = {"role": "assistant", "content": "There are some more of them. " * 500}
REQUESTS: dict[str, list[dict[str, Any]]] = {
    "a message": [{"role": "user", "content": NPI}],
    "a message with a mark and a line's end": [{"role": "user", "content": f' "{NPI}".\r\n'}],
    "a message between others": [HI, {"role": "user", "content": NPI}, HI],
    "a message far within a conversation": [LONG, {"role": "user", "content": NPI}, LONG],
    "a tool's result": [HI, {"role": "tool", "tool_call_id": "call_1", "content": NPI}, HI],
    "one message behind the other": [{"role": "user", "content": NPI}, {"role": "user", "content": NPI}],
    "a part": [{"role": "user", "content": [{"type": "text", "text": NPI}]}],
    "a part between others": [
        {"role": "user", "content": [{"type": "text", "text": text} for text in ("It is", f"{NPI}.", "I think")]}
    ],
    "parts": [{"role": "user", "content": [{"type": "text", "text": NPI}, {"type": "text", "text": NPI}]}],
}


async def received_and_counted(messages: list[dict[str, Any]], **records: Any) -> tuple[str, set[tuple[str, int]]]:
    """Return the text that the provider receives, and the number of findings by action."""
    harness: EngineHarness = FastEngine()
    harness.governance = GovernanceRecords(**records)
    assert harness.caller is not None
    harness.caller = msgspec.structs.replace(harness.caller, groups=(GROUP,))
    harness.outbound.script = [(200, [completion()])]
    answer = await harness.engine.answer(harness.request({"model": "chat/m", "messages": messages}))
    assert answer.status == 200, answer.body
    events = [event for event in harness.outcomes[-1].dlp_events if event.entity_type == "us_npi"]
    sent = json.loads(harness.outbound.sent[-1].body)["messages"]
    return json.dumps(sent), {(event.status, event.match_count) for event in events}


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_number_that_is_a_whole_text_of_a_request_is_logged(name: str) -> None:
    messages = REQUESTS[name]
    sent, events = await received_and_counted(messages)
    count = json.dumps(messages).count(NPI)
    assert json.loads(sent) == messages
    assert events == {("logged", count)}


@OPT_INS
@pytest.mark.parametrize("name", REQUESTS)
async def test_an_opted_in_organization_has_such_numbers_redacted_in_requests(
    name: str, records: dict[str, Any]
) -> None:
    messages = REQUESTS[name]
    sent, events = await received_and_counted(messages, **records)
    assert json.loads(sent) == json.loads(json.dumps(messages).replace(NPI, "[US_NPI_1]"))
    assert events == {("redacted", json.dumps(messages).count(NPI))}


@pytest.mark.parametrize(
    "text",
    [f"1\n{NPI}\n2", f"{NPI}\n{NPI}", f"total{SEPARATOR}{NPI}{SEPARATOR}7", f"{NPI}{SEPARATOR}7", f"7{SEPARATOR}{NPI}"],
    ids=["a line", "lines", "a cell", "the first cell", "the last cell"],
)
async def test_a_number_that_is_a_whole_line_or_cell_is_not_a_whole_text(text: str) -> None:
    for content in (text, [{"type": "text", "text": text}, {"type": "text", "text": "."}]):
        _, events = await received_and_counted([HI, {"role": "user", "content": content}, HI])
        assert events == set()


async def test_a_reversed_number_that_is_a_whole_message_is_redacted() -> None:
    card = "4532015112830366"[::-1]
    for messages in ([{"role": "user", "content": card}], [LONG, {"role": "user", "content": card}, LONG]):
        sent, _ = await received_and_counted(messages)
        assert card not in sent
