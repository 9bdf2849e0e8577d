"""Metrics of requests, and the log lines that belong to them."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
from tests.support.engine import EngineHarness, completion

from gatehouse.detection.models import TierFailed
from gatehouse.platform.metrics import PlatformMetrics
from gatehouse.policy.governance import DlpRuleRecord, GovernanceRecords

CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}


async def test_a_model_without_a_price_is_logged_once(tmp_path: Path) -> None:
    harness = EngineHarness()
    harness.serve("one", "free-of-words", "unpriced", "priced")
    for index in (0, 1):
        harness.models[index] = msgspec.structs.replace(harness.models[index], cost_per_input_token=None)
    harness.ports.meter = PlatformMetrics(tmp_path)
    names = ["one/free-of-words", "one/unpriced", "one/priced"] * 2
    harness.outbound.script = [(200, [completion()]) for _ in names]
    with structlog.testing.capture_logs() as logged:
        for name in names:
            await harness.engine.answer(harness.request({**CHAT, "model": name}))
    warned = [line["model"] for line in logged if line["event"] == "usage.unknown_price"]
    assert warned == ["free-of-words", "unpriced"]


def counting(tmp_path: Path, *rules: DlpRuleRecord, dlp: bool = True) -> tuple[EngineHarness, PlatformMetrics]:
    harness = EngineHarness()
    harness.serve("one", "m")
    harness.outbound.script.append((200, [completion()]))
    harness.governance = GovernanceRecords(dlp_rules=rules)
    harness.flags = {"dlp_enabled": dlp}
    figures = PlatformMetrics(tmp_path)
    harness.ports.meter = figures
    return harness, figures


async def test_a_request_that_dlp_inspected_counts_with_its_duration_and_action(tmp_path: Path) -> None:
    rule = {"id": "r", "name": "r", "detector_type": "regex", "entity_type": "email", "action": "block"}
    harness, figures = counting(tmp_path, msgspec.convert(rule, DlpRuleRecord))
    card = {"messages": [{"role": "user", "content": "my card is 4111 1111 1111 1111"}]}
    blocked = {"messages": [{"role": "user", "content": "write to anna@example.com"}]}
    for body, status in ((CHAT, 200), (card, 200), (blocked, 403)):
        harness.outbound.script.append((200, [completion()]))
        assert (await harness.engine.answer(harness.request({**body, "model": "one/m"}))).status == status
    assert figures.dlp_requests.values == {(): 3.0}
    (series,) = figures.dlp_durations.series.values()
    assert (sum(series.buckets), series.sum > 0) == (3, True)
    assert figures.dlp_triggers.values == {("redact",): 1.0, ("block",): 1.0}


async def test_a_request_that_dlp_did_not_inspect_does_not_count(tmp_path: Path) -> None:
    harness, figures = counting(tmp_path, dlp=False)
    await harness.engine.answer(harness.request({**CHAT, "model": "one/m"}))
    assert (figures.dlp_requests.values, figures.dlp_triggers.values) == ({}, {})


def test_a_tiers_failures_count_by_reason(tmp_path: Path) -> None:
    figures = PlatformMetrics(tmp_path)
    for reason in ("timeout", "timeout", "crashed"):
        figures.tier_failed(TierFailed("ner", reason))
    assert figures.tier_failures.values == {("ner", "timeout"): 2.0, ("ner", "crashed"): 1.0}


async def test_violations_of_the_model_registry_count_by_reason_and_action(tmp_path: Path) -> None:
    harness, figures = counting(tmp_path)
    for mode in ("warn", "block"):
        harness.governance = msgspec.convert({"registry_enforcement": mode}, GovernanceRecords)
        await harness.engine.answer(harness.request({**CHAT, "model": "one/m"}))
    assert {labels: count for labels, count in figures.registry_flags.values.items() if count} == {
        ("model_not_registered", "LOG"): 1.0, ("model_not_registered", "BLOCK"): 1.0,
    }  # fmt: skip


async def test_models_beyond_a_number_share_one_series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatehouse.ingress.metrics.MAX_MODELS", 2)
    harness = EngineHarness()
    harness.serve("one", "a", "b", "c", "d")
    harness.ports.meter = figures = PlatformMetrics(tmp_path)
    harness.outbound.script = [(200, [completion()]) for _ in "abcda"]
    for name in "abcda":
        await harness.engine.answer(harness.request({**CHAT, "model": f"one/{name}"}))
    tokens = {labels[:2]: value for labels, value in figures.tokens.values.items() if labels[2] == "input"}
    assert tokens == {("one", "a"): 20, ("one", "b"): 10, ("other", "other"): 20}
