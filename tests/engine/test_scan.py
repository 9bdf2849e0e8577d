"""`POST /v1/scan`: the action that would be taken, the positions of findings, and an event without the text."""

import json
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.engine.stages.calls.test_content_filters import Topics, topics
from tests.engine.stages.calls.test_content_filters import engine as topical_engine
from tests.support.engine import EngineHarness
from tests.support.values import shows

from gatehouse.engine import scan as engine_scan
from gatehouse.engine.dlp.errors import DlpUnavailable
from gatehouse.engine.dlp.steps import Steps
from gatehouse.engine.dlp.tiers import DlpOptions
from gatehouse.engine.dlp.turns import LONG_TEXT_CHARACTERS, OverBudget
from gatehouse.engine.exchange import Received
from gatehouse.engine.records.outcome import Scanned
from gatehouse.engine.verdict import Refuse
from gatehouse.foundation.errors import Forbidden, Refusal
from gatehouse.foundation.identity import CallerKind
from gatehouse.policy.governance import DlpRuleRecord, GovernanceRecords, PolicyRuleRecord

CARD = "4242 4242 4242 4242"


@pytest.fixture
def harness() -> EngineHarness:
    harness = EngineHarness()
    harness.serve("one", "m")
    return harness


async def scan(harness: EngineHarness, body: Any) -> dict[str, Any]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def read() -> bytes:
        return raw

    request = harness.request(b"")
    received = Received(**{**msgspec.structs.asdict(request), "path": "/v1/scan", "dialect": None})
    answer = await harness.engine.scan(await harness.engine.identify(received, "dlp:read"), read)
    assert answer.status == 200
    response_body: dict[str, Any] = json.loads(answer.body)
    return response_body


async def test_positions_of_findings_are_in_code_points_of_the_callers_text(harness: EngineHarness) -> None:
    text = f"\U0001f600 caf\u00e9: my card is {CARD}"
    result = await scan(harness, {"text": text, "model": "one/m"})
    [finding] = result["findings"]
    assert text[finding["start"] : finding["end"]] == CARD
    assert (result["action"], finding["action_tier"], finding["detector_type"]) == ("REDACT", "redact", "regex")
    assert result["redacted_text"] == "\U0001f600 caf\u00e9: my card is [CREDIT_CARD_1]"
    assert result["policy"] == {"action": "ALLOW", "rule_id": None}
    assert result["content_filter"] is None
    assert (result["tiers"]["regex"]["ran"], result["tiers"]["ner"]["ran"], result["tiers"]["llm"]["ran"]) == (
        True,
        False,
        False,
    )


async def test_findings_are_recorded_without_the_text(harness: EngineHarness) -> None:
    await scan(harness, {"text": f"my card is {CARD}"})
    [entry] = harness.entries
    assert isinstance(entry, Scanned)
    [event] = entry.dlp_events
    assert (event.entity_type, event.direction, event.status) == ("credit_card", "input", "redacted")
    assert not shows(str(entry), "4242")


async def test_a_scan_without_findings_is_not_recorded(harness: EngineHarness) -> None:
    result = await scan(harness, {"text": "Hello"})
    assert (result["action"], result["findings"], result["redacted_text"]) == ("ALLOW", [], "Hello")
    assert harness.entries == []


async def test_a_blocking_rule_is_reported_without_an_error(harness: EngineHarness) -> None:
    rule = DlpRuleRecord(id="r", name="x", detector_type="regex", entity_type="credit_card", action="block")
    harness.governance = GovernanceRecords(dlp_rules=(rule,))
    result = await scan(harness, {"text": CARD})
    assert (result["action"], result["findings"][0]["rule_id"]) == ("BLOCK", "r")


async def test_a_policy_rule_that_blocks_the_model_is_reported(harness: EngineHarness) -> None:
    rule = PolicyRuleRecord(id=UUID(int=5), name="no m", priority=1, condition='model == "one/m"', action="BLOCK")
    harness.governance = GovernanceRecords(policy_rules=(rule,))
    result = await scan(harness, {"text": "Hello", "model": "one/m"})
    assert (result["action"], result["policy"]) == ("BLOCK", {"action": "BLOCK", "rule_id": str(UUID(int=5))})
    assert (await scan(harness, {"text": "Hello"}))["action"] == "ALLOW"


async def test_a_forbidden_topic_is_found_by_the_semantic_tier() -> None:
    harness = topical_engine(topics(1, "law"), topics=Topics(law=0.9))
    result = await scan(harness, {"text": "about law"})
    assert (result["action"], result["content_filter"]["filter_id"]) == ("BLOCK", str(UUID(int=1)))
    assert result["tiers"]["llm"]["ran"] is True


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
async def test_a_bad_body_names_the_field(harness: EngineHarness, body: Any, named: str) -> None:
    with pytest.raises(Refusal) as refused:
        await scan(harness, body)
    assert refused.value.status == 400
    assert named.lower() in refused.value.text.lower()


async def test_a_scan_needs_the_scope_for_dlp(harness: EngineHarness) -> None:
    assert harness.caller is not None
    harness.caller = msgspec.structs.replace(
        harness.caller, kind=CallerKind.OAUTH_CLIENT, scopes=frozenset({"chat:write"})
    )
    with pytest.raises(Forbidden):
        await scan(harness, {"text": "a"})


async def test_the_name_of_an_unknown_model_is_redacted_in_the_record(harness: EngineHarness) -> None:
    result = await scan(harness, {"text": f"my card is {CARD}", "model": f"m {CARD}"})
    assert result["redacted_text"] == "my card is [CREDIT_CARD_1]"
    [entry] = harness.entries
    assert isinstance(entry, Scanned)
    assert entry.requested_model == "m [CREDIT_CARD_1]"


@pytest.mark.parametrize("mode", ["open", "closed"])
async def test_a_scan_that_runs_out_of_budget_never_returns_the_value_and_is_recorded(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The returned text never contains the value, and the findings are always recorded."""
    harness = EngineHarness(dlp=DlpOptions(fail_mode=mode))  # type: ignore[arg-type]
    harness.serve("one", "m")

    def without_time(*_: Any) -> Steps[str]:
        yield
        raise OverBudget("work")

    monkeypatch.setattr(engine_scan, "apply_replacements_in_steps", without_time)
    text = json.dumps({"padding": "x" * (2 * LONG_TEXT_CHARACTERS), "card": CARD})
    if mode == "open":
        result = await scan(harness, {"text": text})
        assert result["action"] == "REDACT"
        assert CARD not in result["redacted_text"]
        assert result["redacted_text"] == text.replace(CARD, "[CREDIT_CARD_1]")
    else:
        with pytest.raises(DlpUnavailable):
            await scan(harness, {"text": text})
    [entry] = harness.entries
    assert isinstance(entry, Scanned)
    assert entry.dlp_events


async def test_a_filter_that_cannot_be_evaluated_is_reported_as_unavailable(
    harness: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = Refuse(DlpUnavailable("The semantic tier is unavailable."))
    monkeypatch.setattr(engine_scan.content_filters, "check", lambda *_: refusal)
    with pytest.raises(DlpUnavailable):
        await scan(harness, {"text": "A text."})
