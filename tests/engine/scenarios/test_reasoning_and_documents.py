"""Reasoning and documents across dialects, through the whole engine."""

import base64
import json
from typing import Any

import msgspec
import pytest
from tests.engine.dlp.scenarios.test_requests import rule
from tests.support.engine import EngineHarness

from gatehouse.engine.exchange import Answer
from gatehouse.policy.governance import GovernanceRecords

CARD = "4111 1111 1111 1111"
LABEL = "[CREDIT_CARD_1]"
#: how a client of each dialect requests the text of the reasoning
CLIENTS: dict[str, dict[str, Any]] = {
    "openai_chat": {"messages": [{"role": "user", "content": "hi"}]},
    "openai_responses": {"input": "hi", "reasoning": {"summary": "auto"}},
    "anthropic_messages": {
        "messages": [{"role": "user", "content": "hi"}], "max_tokens": 50_000, "thinking": {"type": "adaptive"},
    },
}  # fmt: skip
THOUGHT = f"The card is {CARD}, I must not say it."
OPENAI = {
    "id": "x", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop",
                 "message": {"role": "assistant", "content": "Done.", "reasoning_content": THOUGHT}}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13},
}  # fmt: skip
ANTHROPIC = {
    "id": "x", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "stop_sequence": None,
    "content": [{"type": "thinking", "thinking": THOUGHT, "signature": "c2ln"}, {"type": "text", "text": "Done."}],
    "usage": {"input_tokens": 9, "output_tokens": 4},
}  # fmt: skip
PIECES = (THOUGHT[:16], THOUGHT[16:24], THOUGHT[24:])


def openai_events() -> list[bytes]:
    deltas = [{"role": "assistant", "content": ""}, *({"reasoning_content": piece} for piece in PIECES),
              {"content": "Done."}]  # fmt: skip
    chunks: list[dict[str, Any]] = [
        {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    chunks.append({"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks] + [b"data: [DONE]\n\n"]


def anthropic_events() -> list[bytes]:
    thinking, text = {"type": "thinking", "thinking": "", "signature": ""}, {"type": "text", "text": ""}
    data: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**ANTHROPIC, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": thinking},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": piece}}
          for piece in PIECES),
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": text},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Done."}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
        {"type": "message_stop"},
    ]  # fmt: skip
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in data]


#: by the kind of provider: a whole answer, and a stream
PROVIDERS = {"openai_compatible": (OPENAI, openai_events), "anthropic": (ANTHROPIC, anthropic_events)}


def engine(kind: str, *rules: Any, model: str = "m") -> EngineHarness:
    harness = EngineHarness()
    harness.serve("one", model, kind=kind, cloud_region="us-east-1")
    # Bedrock's calls have no default credential.
    harness.providers = [msgspec.structs.replace(harness.providers[0], sealed_credentials="key")]
    harness.governance = GovernanceRecords(dlp_rules=rules)
    return harness


async def ask(harness: EngineHarness, dialect: str, **body: Any) -> Answer:
    return await harness.engine.answer(
        harness.request({"model": f"one/{harness.models[0].model_id}", **CLIENTS[dialect], **body}, dialect=dialect)
    )


def texts(value: Any) -> str:
    """Return all strings of an answer, joined: pieces of a stream follow each other."""
    if isinstance(value, str):
        return value
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return "".join(map(texts, items))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", CLIENTS)
@pytest.mark.parametrize("kind", PROVIDERS)
async def test_the_reasoning_reaches_the_client_redacted_and_is_recorded(kind: str, dialect: str, stream: bool) -> None:
    whole, events = PROVIDERS[kind]
    harness = engine(kind, rule("credit_card", "redact"))
    harness.outbound.script = [(200, list(events()) if stream else [json.dumps(whole).encode()])]
    answer = await ask(harness, dialect, stream=stream)
    if stream:
        assert answer.stream is not None, answer.body
        raw = b"".join([block async for block in answer.stream]).decode()
        lines = [line.removeprefix("data: ") for line in raw.splitlines() if line.startswith("data: {")]
        shown = "".join(_piece(json.loads(line)) for line in lines)
    else:
        shown = texts(json.loads(answer.body))
        raw = shown
    assert f"The card is {LABEL}, I must not say it." in shown
    assert "4111 1111" not in raw
    assert "Done." in raw
    [outcome] = harness.outcomes
    assert outcome.dlp_action == "REDACT"


def _piece(event: dict[str, Any]) -> str:
    """Return the text of the reasoning in one event."""
    if event.get("type", "").startswith("response.reasoning_summary_text.delta"):
        return str(event["delta"])
    if event.get("type") == "content_block_delta":
        return str(event["delta"].get("thinking", ""))
    choices = event.get("choices") or [{}]
    return str(choices[0].get("delta", {}).get("reasoning_content") or "")


PDF = "data:application/pdf;base64," + base64.b64encode(b"%PDF-1.4 not a document").decode()
DOCUMENTS: dict[str, Any] = {
    "openai_chat": {
        "messages": [{"role": "user", "content": [{"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}}]}]
    },
    "openai_responses": {
        "input": [{"role": "user", "content": [{"type": "input_file", "filename": "a.pdf", "file_data": PDF}]}]
    },
    "anthropic_messages": {
        "messages": [{"role": "user", "content": [
            {"type": "document", "title": "a.pdf",
             "source": {"type": "base64", "media_type": "application/pdf", "data": PDF.partition(",")[2]}},
        ]}]
    },
}  # fmt: skip
DATA = PDF.partition(",")[2]
SENT_DOCUMENTS = {
    "openai_compatible": {"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}},
    "anthropic": {
        "type": "document", "title": "a.pdf",
        "source": {"type": "base64", "media_type": "application/pdf", "data": DATA},
    },
    "gemini": {"inlineData": {"mimeType": "application/pdf", "data": DATA}},
    "mistral": {"type": "document_url", "document_url": PDF},
    "bedrock": {"document": {"format": "pdf", "name": "a-pdf", "source": {"bytes": DATA}}},
}  # fmt: skip


@pytest.mark.parametrize("kind", SENT_DOCUMENTS)
@pytest.mark.parametrize("dialect", DOCUMENTS)
async def test_a_document_reaches_a_provider_of_another_dialect(dialect: str, kind: str) -> None:
    harness = engine(kind)
    harness.outbound.script = [(500, [b"{}"])]
    await ask(harness, dialect, **DOCUMENTS[dialect])
    sent = json.loads(harness.outbound.sent[0].body or b"")
    messages = sent["contents"] if kind == "gemini" else sent["messages"]
    parts = messages[0]["parts" if kind == "gemini" else "content"]
    assert parts == [SENT_DOCUMENTS[kind]]


@pytest.mark.parametrize("dialect", DOCUMENTS)
async def test_dlp_reads_a_converted_document_before_it_is_sent(dialect: str) -> None:
    text = base64.b64encode(f"Order 7 was paid with card {CARD}. Thank you very much for it.".encode()).decode()
    body = json.loads(json.dumps(DOCUMENTS[dialect]).replace(DATA, text).replace("application/pdf", "text/plain"))
    harness = engine("gemini", rule("credit_card", "block"))
    answer = await ask(harness, dialect, **body)
    assert (answer.status, harness.outbound.sent) == (403, [])


@pytest.mark.parametrize(
    ("dialect", "part"),
    [
        ("openai_chat", {"type": "file", "file": {"file_id": "file-1"}}),
        ("openai_chat", {"type": "file", "file": {"file_data": "no url"}}),
        ("anthropic_messages", {"type": "document", "source": {"type": "file", "file_id": "file_1"}}),
    ],
)
async def test_a_document_that_cannot_be_converted_is_refused_by_name(dialect: str, part: dict[str, Any]) -> None:
    harness = engine("gemini")
    answer = await ask(harness, dialect, messages=[{"role": "user", "content": [part]}])
    assert answer.status == 400
    assert json.loads(answer.body)["error"]["param"].startswith("messages[0].content[0].")
    assert not harness.outbound.sent


@pytest.mark.parametrize(
    ("url", "is_sent"),
    [
        ("https://example.com/a.pdf", True),
        ("gs://bucket/a.pdf", False),
        ("https://generativelanguage.googleapis.com/v1beta/files/abc", False),
        ("https://GENERATIVELANGUAGE.googleapis.com./v1beta/files/abc", False),
        ("https://[broken/a.pdf", False),
    ],
)
@pytest.mark.parametrize("kind", ["document", "image"])
async def test_a_url_of_the_providers_own_files_is_not_sent(kind: str, url: str, is_sent: bool) -> None:
    harness = engine("gemini")
    harness.outbound.script = [(500, [b"{}"])]
    part = {"type": kind, "source": {"type": "url", "url": url}}
    answer = await ask(harness, "anthropic_messages", messages=[{"role": "user", "content": [part]}])
    assert bool(harness.outbound.sent) is is_sent
    if not is_sent:
        assert (answer.status, json.loads(answer.body)["type"]) == (400, "error")


async def test_an_empty_message_at_the_end_is_no_beginning_of_an_answer() -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": ""}]
    harness = engine("anthropic", model="claude-opus-4-6")
    harness.outbound.script = [(500, [b"{}"])]
    await ask(harness, "openai_chat", messages=messages)
    (sent,) = json.loads(harness.outbound.sent[0].body or b"")["messages"]
    assert sent == {"role": "user", "content": [{"type": "text", "text": "hi"}]}


@pytest.mark.parametrize(("kind", "prefix"), [("anthropic", ""), ("bedrock", "anthropic.")])
async def test_a_beginning_of_the_answer_is_refused_for_models_that_refuse_it(kind: str, prefix: str) -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Well"}]
    for model, is_sent in (("claude-sonnet-4-5", True), ("claude-opus-4-6", False)):
        harness = engine(kind, model=prefix + model)
        harness.outbound.script = [(500, [b"{}"])]
        answer = await ask(harness, "openai_chat", messages=messages)
        assert bool(harness.outbound.sent) is is_sent
        if not is_sent:
            assert (answer.status, json.loads(answer.body)["error"]["param"]) == (400, "messages")


async def test_a_stream_that_waited_for_an_approval_names_its_headers_in_comments() -> None:
    harness = engine("openai_compatible", rule("project", "prompt", pattern="PRJ-[0-9]{4}"))
    harness.flags = {"human_in_loop": True}
    harness.outbound.script = [(200, list(openai_events()))]
    body = {**CLIENTS["anthropic_messages"], "messages": [{"role": "user", "content": "PRJ-1234"}], "top_k": 3}
    answer = await ask(harness, "anthropic_messages", **body, stream=True)
    assert answer.stream is not None
    assert "X-Gateway-Dropped" not in answer.headers
    raw = b"".join([block async for block in answer.stream]).decode()
    assert raw.startswith(": waiting for approval\n\n")
    comments = [line for line in raw.splitlines() if line.startswith(": X-Gateway-")]
    assert ": X-Gateway-Provider: one" in comments
    (dropped,) = [line for line in comments if line.startswith(": X-Gateway-Dropped: ")]
    assert "top_k" in dropped
    assert raw.rstrip().endswith('{"type":"message_stop"}')
