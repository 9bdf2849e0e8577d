"""Moderations and reranking, which providers of the same dialect serve."""

import json
from typing import Any
from urllib.parse import urlsplit

import httpx2
import msgspec
import pytest
from tests.engine.dlp.scenarios.test_requests import rule
from tests.engine.stages.calls.test_content_filters import keywords
from tests.support.engine import EngineHarness

from gatehouse.engine.exchange import Answer
from gatehouse.policy.catalog import Quirks
from gatehouse.policy.governance import GovernanceRecords

CARD = "4111 1111 1111 1111"
MODERATE: dict[str, Any] = {"model": "one/m", "input": ["Hello", "there"]}
RERANK: dict[str, Any] = {
    "model": "one/m",
    "query": "open gate",
    "documents": ["a door", {"text": "a gate"}],
    "top_n": 1,
}
MODERATED = json.dumps({"id": "modr-1", "model": "m", "results": [{"flagged": False}] * 2}).encode()


def reranked(document: str | None = None, **more: Any) -> bytes:
    result: dict[str, Any] = {"index": 1, "relevance_score": 0.9}
    if document is not None:
        result["document"] = {"text": document}
    return json.dumps({"id": "r", "results": [result], **more}).encode()


def engine(kind: str = "openai_compatible", **config: Any) -> EngineHarness:
    harness = EngineHarness()
    harness.serve("one", "m", kind=kind, **config)
    return harness


async def ask(harness: EngineHarness, body: dict[str, Any], dialect: str, **changes: Any) -> Answer:
    return await harness.engine.answer(harness.request({**body, **changes}, dialect=dialect))


def error_of(answer: Answer) -> tuple[int, str, Any]:
    error = json.loads(answer.body)["error"]
    return answer.status, error["code"], error.get("param")


@pytest.mark.parametrize("kind", ["openai", "openai_compatible", "mistral", "byoe"])
async def test_moderations_pass(kind: str) -> None:
    harness = engine(kind)
    harness.outbound.script = [(200, [MODERATED])]
    answer = await ask(harness, MODERATE, "openai_moderations")
    assert json.loads(answer.body) == {**json.loads(MODERATED), "model": "one/m"}
    [sent] = harness.outbound.sent
    assert sent.url == "http://one.test/v1/moderations"
    assert json.loads(sent.body) == {**MODERATE, "model": "m"}
    [outcome] = harness.outcomes
    assert (outcome.outcome, outcome.output_tokens) == ("success", 0)


async def test_a_moderation_without_a_model_uses_openais_default() -> None:
    harness = EngineHarness()
    harness.serve("one", "omni-moderation-latest", kind="openai")
    harness.outbound.script = [(200, [MODERATED])]
    parts = [{"type": "text", "text": f"pay {CARD}"}, {"type": "image_url", "image_url": {"url": "https://a.test/b"}}]
    harness.governance = GovernanceRecords(dlp_rules=(rule("credit_card", "redact"),))
    answer = await harness.engine.answer(harness.request({"input": parts}, dialect="openai_moderations"))
    assert answer.status == 200
    sent = json.loads(harness.outbound.sent[0].body)
    assert sent["model"] == "omni-moderation-latest"
    assert sent["input"][0]["text"] == "pay [CREDIT_CARD_1]"


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"usage": {"total_tokens": 12}}, 12),
        ({"usage": {"prompt_tokens": 9, "total_tokens": 12}}, 9),
        ({"meta": {"billed_units": {"search_units": 1}, "tokens": {"input_tokens": 7.0}}}, 7),
    ],
)
async def test_reranking_passes(usage: dict[str, Any], tokens: int) -> None:
    harness = engine()
    harness.outbound.script = [(200, [reranked(**usage)])]
    answer = await ask(harness, RERANK, "cohere_rerank")
    assert json.loads(answer.body) == json.loads(reranked(**usage))
    [sent] = harness.outbound.sent
    assert sent.url == "http://one.test/v1/rerank"
    assert json.loads(sent.body) == {**RERANK, "model": "m", "documents": ["a door", "a gate"]}
    [outcome] = harness.outcomes
    assert (outcome.input_tokens, outcome.output_tokens) == (tokens, 0)


@pytest.mark.parametrize(("kind", "config"), [("openai_compatible", {}), ("byoe", {"format": "openai"})])
async def test_a_provider_can_have_another_path_of_reranking(kind: str, config: dict[str, Any]) -> None:
    quirks = Quirks(rerank_path="/v1/rerank")
    harness = engine(kind, base_url="https://api.cohere.ai/compatibility/v1", quirks=quirks, **config)
    harness.outbound.script = [(200, [reranked()])]
    assert (await ask(harness, RERANK, "cohere_rerank")).status == 200
    assert harness.outbound.sent[0].url == "https://api.cohere.ai/v1/rerank"


@pytest.mark.parametrize(
    "path", ["//evil.example/v1/rerank", "///evil.example", "/\\\\evil.example/v1", "/../rerank", "/x@evil"]
)
async def test_the_path_of_reranking_never_changes_the_host(path: str) -> None:
    # The API refuses most of these paths. A path in the database could be older.
    harness = engine(base_url="https://api.cohere.ai:8443/compatibility/v1", quirks=Quirks(rerank_path=path))
    harness.outbound.script = [(200, [reranked()])]
    assert (await ask(harness, RERANK, "cohere_rerank")).status == 200
    for parts in (urlsplit(harness.outbound.sent[0].url), httpx2.URL(harness.outbound.sent[0].url)):
        assert (parts.scheme, parts.netloc) in {("https", "api.cohere.ai:8443"), ("https", b"api.cohere.ai:8443")}


async def test_dlp_inspects_query_documents_and_returned_documents() -> None:
    harness = engine()
    harness.governance = GovernanceRecords(dlp_rules=(rule("credit_card", "redact"),))
    harness.outbound.script = [(200, [reranked(f"other 5555 5555 5555 4444 of {CARD}")])]
    answer = await ask(
        harness, RERANK, "cohere_rerank", query=f"who has {CARD}", documents=[f"a {CARD}", {"text": f"b {CARD}"}]
    )
    assert CARD.encode() not in harness.outbound.sent[0].body
    assert b"5555 5555" not in answer.body
    directions = {event.direction for event in harness.outcomes[0].dlp_events}
    assert directions == {"input", "output"}


async def test_content_filters_apply_to_documents() -> None:
    harness = engine()
    harness.governance = GovernanceRecords(filters=(keywords(1, "falcon"),))
    answer = await ask(harness, RERANK, "cohere_rerank", documents=["one", {"text": "a falcon"}])
    assert error_of(answer)[:2] == (403, "content_filter_violation")


@pytest.mark.parametrize(
    ("dialect", "body", "changes", "param"),
    [
        ("openai_moderations", MODERATE, {"input": []}, "input"),
        ("openai_moderations", MODERATE, {"input": [1]}, "input[0]"),
        ("openai_moderations", MODERATE, {"stream": True}, "stream"),
        ("cohere_rerank", RERANK, {"query": 1}, "query"),
        ("cohere_rerank", RERANK, {"documents": []}, "documents"),
        ("cohere_rerank", RERANK, {"documents": ["a", {"title": "b"}]}, "documents[1].text"),
        ("cohere_rerank", RERANK, {"documents": [1]}, "documents[0]"),
        ("cohere_rerank", RERANK, {"top_n": 0}, "top_n"),
        ("cohere_rerank", RERANK, {"stream": True}, "stream"),
    ],
)
async def test_invalid_fields_are_named(dialect: str, body: Any, changes: dict[str, Any], param: str) -> None:
    assert error_of(await ask(engine(), body, dialect, **changes)) == (400, "invalid_value", param)


@pytest.mark.parametrize("kind", ["anthropic", "gemini", "bedrock"])
@pytest.mark.parametrize(("dialect", "body"), [("openai_moderations", MODERATE), ("cohere_rerank", RERANK)])
async def test_a_provider_without_the_operation_is_named(kind: str, dialect: str, body: Any) -> None:
    harness = engine(kind)
    answer = await ask(harness, body, dialect)
    assert error_of(answer)[:2] == (400, "operation_not_supported")
    message = json.loads(answer.body)["error"]["message"]
    assert f"one ({kind})" in message
    assert "/v1/" in message
    assert not harness.outbound.sent


async def test_a_candidate_without_the_operation_is_skipped() -> None:
    harness = engine("anthropic")
    harness.serve("two", "m2")
    harness.outbound.script = [(200, [reranked()])]
    answer = await ask(harness, RERANK, "cohere_rerank", fallbacks=["two/m2"])
    assert (answer.status, answer.headers["X-Gateway-Provider"]) == (200, "two")


async def test_a_model_that_the_catalog_excludes_is_refused() -> None:
    harness = engine()
    harness.models = [msgspec.structs.replace(model, capabilities={"rerank": False}) for model in harness.models]
    answer = await ask(harness, RERANK, "cohere_rerank")
    assert error_of(answer)[:2] == (400, "operation_not_supported")
    assert "its capability `rerank` is false" in json.loads(answer.body)["error"]["message"]


@pytest.mark.parametrize("body", [b'{"ranking": []}', b"<html>", b'{"results": 3}'])
async def test_an_answer_of_another_form_is_the_providers_fault(body: bytes) -> None:
    harness = engine()
    harness.outbound.script = [(200, [body])]
    assert error_of(await ask(harness, RERANK, "cohere_rerank"))[:2] == (502, "all_providers_failed")
