"""`POST /v1/scan`: what would be done, where it stands, and an event of it without the text."""

import json
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.engine.stages.test_content_filters import Topics, topics
from tests.engine.stages.test_content_filters import engine as topical_engine
from tests.support.engine import HeldEngine
from tests.support.values import shows

from gatehouse.engine.exchange import Received
from gatehouse.engine.records.outcome import Scanned
from gatehouse.foundation.errors import Forbidden, Refusal
from gatehouse.foundation.identity import CallerKind
from gatehouse.policy.governance import DlpRuleRecord, GovernanceRecords, PolicyRuleRecord

CARD = "4242 4242 4242 4242"


@pytest.fixture
def held() -> HeldEngine:
    held = HeldEngine()
    held.serve("one", "m")
    return held


async def scan(held: HeldEngine, body: Any) -> dict[str, Any]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def read() -> bytes:
        return raw

    request = held.request(b"")
    received = Received(**{**msgspec.structs.asdict(request), "path": "/v1/scan", "dialect": None})
    answer = await held.engine.scan(await held.engine.identify(received, "dlp:read"), read)
    assert answer.status == 200
    told: dict[str, Any] = json.loads(answer.body)
    return told


async def test_findings_count_code_points_of_the_callers_text(held: HeldEngine) -> None:
    text = f"\U0001f600 caf\u00e9: my card is {CARD}"
    told = await scan(held, {"text": text, "model": "one/m"})
    [finding] = told["findings"]
    assert text[finding["start"] : finding["end"]] == CARD
    assert (told["action"], finding["action_tier"], finding["detector_type"]) == ("REDACT", "redact", "regex")
    assert told["redacted_text"] == "\U0001f600 caf\u00e9: my card is [CREDIT_CARD_1]"
    assert told["policy"] == {"action": "ALLOW", "rule_id": None}
    assert told["content_filter"] is None
    assert (told["tiers"]["regex"]["ran"], told["tiers"]["ner"]["ran"], told["tiers"]["llm"]["ran"]) == (
        True,
        False,
        False,
    )


async def test_what_was_found_is_on_record_without_the_text(held: HeldEngine) -> None:
    await scan(held, {"text": f"my card is {CARD}"})
    [entry] = held.entries
    assert isinstance(entry, Scanned)
    [event] = entry.dlp_events
    assert (event.entity_type, event.direction, event.status) == ("credit_card", "input", "redacted")
    assert not shows(str(entry), "4242")


async def test_nothing_found_leaves_no_record(held: HeldEngine) -> None:
    told = await scan(held, {"text": "Hello"})
    assert (told["action"], told["findings"], told["redacted_text"]) == ("ALLOW", [], "Hello")
    assert held.entries == []


async def test_a_rule_that_blocks_is_told_and_not_raised(held: HeldEngine) -> None:
    rule = DlpRuleRecord(id="r", name="x", detector_type="regex", entity_type="credit_card", action="block")
    held.governance = GovernanceRecords(dlp_rules=(rule,))
    told = await scan(held, {"text": CARD})
    assert (told["action"], told["findings"][0]["rule_id"]) == ("BLOCK", "r")


async def test_a_policy_rule_that_blocks_the_model_is_told(held: HeldEngine) -> None:
    rule = PolicyRuleRecord(id=UUID(int=5), name="no m", priority=1, condition='model == "one/m"', action="BLOCK")
    held.governance = GovernanceRecords(policy_rules=(rule,))
    told = await scan(held, {"text": "Hello", "model": "one/m"})
    assert (told["action"], told["policy"]) == ("BLOCK", {"action": "BLOCK", "rule_id": str(UUID(int=5))})
    assert (await scan(held, {"text": "Hello"}))["action"] == "ALLOW"


async def test_a_topic_that_a_filter_forbids_has_asked_the_semantic_tier() -> None:
    held = topical_engine(topics(1, "law"), topics=Topics(law=0.9))
    told = await scan(held, {"text": "about law"})
    assert (told["action"], told["content_filter"]["filter_id"]) == ("BLOCK", str(UUID(int=1)))
    assert told["tiers"]["llm"]["ran"] is True


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"{", "ends too early"),
        ({}, "text"),
        ({"text": 5}, "text"),
        ({"text": "a", "model": 7}, "model"),
        ({"text": "a" * 1_000_001}, "text"),
    ],
)  # fmt: skip
async def test_a_bad_body_names_the_field(held: HeldEngine, body: Any, named: str) -> None:
    with pytest.raises(Refusal) as refused:
        await scan(held, body)
    assert refused.value.status == 400
    assert named.lower() in refused.value.text.lower()


async def test_it_needs_the_scope_of_dlp(held: HeldEngine) -> None:
    assert held.caller is not None
    held.caller = msgspec.structs.replace(held.caller, kind=CallerKind.OAUTH_CLIENT, scopes=frozenset({"chat:write"}))
    with pytest.raises(Forbidden):
        await scan(held, {"text": "a"})


async def test_the_name_of_an_unknown_model_is_recorded_without_what_it_holds(held: HeldEngine) -> None:
    told = await scan(held, {"text": f"my card is {CARD}", "model": f"m {CARD}"})
    assert told["redacted_text"] == "my card is [CREDIT_CARD_1]"
    [entry] = held.entries
    assert isinstance(entry, Scanned)
    assert entry.requested_model == "m [CREDIT_CARD_1]"
