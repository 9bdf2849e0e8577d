"""Every string field of the stock clients' types, in requests, answers and streams: either a card number in it is
stopped, or the field is in the list of fields that are not inspected. Every number field is unchanged."""

import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from anthropic import types as anthropic
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from openai.types import CreateEmbeddingResponse, EmbeddingCreateParams, chat
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from tests.support.client_types import Case, numbers, strings
from tests.support.fast_engine import FastEngine

from gatehouse.engine.conversation.uninspected import EXCEPTIONS

DOCS = Path(__file__).parents[4] / "docs" / "dlp.md"
CHAT, RESPONSES, MESSAGES, EMBEDDINGS = "openai_chat", "openai_responses", "anthropic_messages", "openai_embeddings"
CARD = "4242 4242 4242 4242"
ENCODED = b64encode(f"my card is {CARD}, and it is good for all that you can think of".encode()).decode()
#: A text with a card number that looks like a signature of a provider.
SEALED = "/my-card-is/4242-4242-4242-4242/and-it-is-good-for-all-that-you-can-think-of/"
ADDRESSES = {"url", "image_url", "file_url", "server_url", "uri"}
#: The ways in which a card number is written into a field.
WAYS: dict[str, Callable[[str], str]] = {
    "card": lambda field: f"https://example.com/{CARD}" if field in ADDRESSES else CARD,
    "encoded": lambda field: f"data:text/plain;base64,{ENCODED}" if field in ADDRESSES else ENCODED,
    "sealed": lambda field: f"https://example.com{SEALED}" if field in ADDRESSES else SEALED,
}
HI = [{"role": "user", "content": "hi"}]
ASKS: dict[str, dict[str, Any]] = {
    CHAT: {"messages": HI},
    RESPONSES: {"input": "hi"},
    MESSAGES: {"messages": HI, "max_tokens": 9},
    EMBEDDINGS: {"input": "hi"},
}
REQUESTS: dict[str, tuple[Any, str]] = {
    CHAT: (CompletionCreateParamsNonStreaming, "chat"),
    RESPONSES: (ResponseCreateParamsNonStreaming, "chat"),
    MESSAGES: (MessageCreateParamsNonStreaming, "claude"),
    EMBEDDINGS: (EmbeddingCreateParams, "chat"),
}
#: Names of fields that may contain a card number, by where they are. Fields of fixed words or bytes are recognized by
#: their content, and a card number is neither.
PASSING = {
    where: frozenset(field for exception in EXCEPTIONS if exception.where == where for field in exception.fields)
    for where in ("requests, at the top", "answers", "answers of embeddings")
}

COMPLETION: dict[str, Any] = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}  # fmt: skip
CHUNK: dict[str, Any] = {
    "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
    "choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": None}],
}  # fmt: skip
MESSAGE: dict[str, Any] = {
    "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "y"}],
    "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
}  # fmt: skip
VECTORS: dict[str, Any] = {
    "object": "list", "model": "m", "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
    "usage": {"prompt_tokens": 1, "total_tokens": 1},
}  # fmt: skip
BEGUN: dict[str, Any] = {**MESSAGE, "content": [], "stop_reason": None}
EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": BEGUN},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": " hi"}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 3},
    },
    {"type": "message_stop"},
]


def with_case(body: dict[str, Any], case: Case) -> dict[str, Any]:
    """Return a body in which the case's field replaces the body's own field."""
    return {**body, case.path[0]: case.value[case.path[0]]}


def event(data: dict[str, Any], name: str | None = None) -> bytes:
    named = f"event: {name}\n".encode() if name else b""
    return named + b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"


def chunks(case: Case) -> list[bytes]:
    last = {**CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return [event(with_case(CHUNK, case)), event(last), b"data: [DONE]\n\n"]


def message_events(case: Case) -> list[bytes]:
    data, kind = case.value, case.value["type"]
    rest = [event(item, item["type"]) for item in EVENTS]
    if case.path == ("type",):
        return [rest[0], event(data, kind), *rest[1:]]
    if kind == "message_start":
        data = {**data, "message": with_case(BEGUN, Case(case.path[1:], data["message"]))}
    if "index" in data and case.path != ("index",):
        data = {**data, "index": 0}
    return [event(data, kind) if item["type"] == kind else whole for item, whole in zip(EVENTS, rest, strict=True)]


class ProviderAnswer(NamedTuple):
    """An answer of a provider: its type, and a case of it as bytes."""

    kind: Any
    provider: str
    write: Callable[[Case], Sequence[bytes]]
    is_stream: bool = False


PROVIDER_ANSWERS: dict[str, ProviderAnswer] = {
    "completion": ProviderAnswer(
        chat.ChatCompletion, "chat", lambda case: [json.dumps(with_case(COMPLETION, case)).encode()]
    ),
    "message": ProviderAnswer(
        anthropic.Message, "claude", lambda case: [json.dumps(with_case(MESSAGE, case)).encode()]
    ),
    "chunks": ProviderAnswer(chat.ChatCompletionChunk, "chat", chunks, is_stream=True),
    "events": ProviderAnswer(anthropic.RawMessageStreamEvent, "claude", message_events, is_stream=True),
    "vectors": ProviderAnswer(
        CreateEmbeddingResponse, "chat", lambda case: [json.dumps(with_case(VECTORS, case)).encode()]
    ),
}
PAIRS = [(item, client) for item in list(PROVIDER_ANSWERS)[:-1] for client in (CHAT, RESPONSES, MESSAGES)] + [
    ("vectors", EMBEDDINGS)
]


def request_body(client: str, answer_case: ProviderAnswer) -> dict[str, Any]:
    stream = {"stream": True} if answer_case.is_stream else {}
    return {"model": f"{answer_case.provider}/m", **ASKS[client], **stream}


def holds_card(data: bytes) -> bool:
    return b"4242 4242" in data or ENCODED.encode() in data


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dialect", REQUESTS)
async def test_no_string_of_a_request_is_sent_with_a_card(dialect: str, way: str) -> None:
    kind, provider = REQUESTS[dialect]
    engine = FastEngine()
    cases = list(strings(kind, WAYS[way]))
    sent = 0
    passed = set()
    for case in cases:
        body = with_case({"model": f"{provider}/m", **ASKS[dialect]}, case)
        _, _, received = await engine.exchange(dialect, body, [json.dumps(COMPLETION).encode()])
        sent += received is not None
        if received is not None and holds_card(received):
            passed.add(case.path)
    assert passed == set()
    # The other cases are refused: the responses dialect accepts only fields that other providers know, and sealed
    # fields block.
    assert sent > len(cases) * (0.05 if dialect == RESPONSES else 0.3)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("answer", "client"), PAIRS)
async def test_no_string_of_an_answer_is_returned_with_a_card(answer: str, client: str, way: str) -> None:
    result = PROVIDER_ANSWERS[answer]
    # Encoded values are found only in whole texts.
    engine = FastEngine(stream_mode="hold" if way == "encoded" else "window")
    allowed = PASSING["answers of embeddings"] if answer == "vectors" else PASSING["answers"]
    passed = set()
    for case in strings(result.kind, WAYS[way]):
        _, received, _ = await engine.exchange(client, request_body(client, result), result.write(case))
        if holds_card(received) and allowed.isdisjoint(case.path):
            passed.add(case.path)
    assert passed == set()


#: Times and counts that have the check digit of an identifier: of a card, a practitioner, a company or a patient.
PLAUSIBLE = (1795459617, 1234567893, 4242424242, 2123456802)


@pytest.mark.parametrize("number", PLAUSIBLE)
@pytest.mark.parametrize("dialect", REQUESTS)
async def test_no_number_of_a_request_is_changed(dialect: str, number: int) -> None:
    kind, provider = REQUESTS[dialect]
    engine = FastEngine()
    for case in numbers(kind, number):
        body = with_case({"model": f"{provider}/m", **ASKS[dialect]}, case)
        _, result, sent = await engine.exchange(dialect, body, [json.dumps(COMPLETION).encode()])
        assert b'"X-DLP-Action": "REDACT"' not in result, case.path
        if sent is not None and dialect != RESPONSES:
            assert str(number).encode() in sent, case.path


@pytest.mark.parametrize("number", PLAUSIBLE)
@pytest.mark.parametrize(("answer", "client"), [("completion", CHAT), ("message", MESSAGES), ("vectors", EMBEDDINGS),
                                                ("chunks", CHAT), ("events", MESSAGES)])  # fmt: skip
async def test_no_number_of_an_answer_is_changed(answer: str, client: str, number: int) -> None:
    result = PROVIDER_ANSWERS[answer]
    engine = FastEngine()
    for case in numbers(result.kind, number):
        _, received, _ = await engine.exchange(client, request_body(client, result), result.write(case))
        # Repetitions of the text, and usage that the client did not request, may be left out.
        assert str(number).encode() in received or {"logprobs", "usage"} & set(case.path), case.path
        assert b"_1]" not in received, case.path


def test_the_documentation_lists_the_fields_that_are_not_inspected() -> None:
    _, _, section = DOCS.read_text().partition("### What is not inspected\n")
    rows = [line for line in section.partition("\n#")[0].splitlines() if line.startswith("| `")]
    assert rows == [
        f"| {', '.join(f'`{field}`' for field in sorted(exception.fields))} | {exception.where} | {exception.why} |"
        for exception in EXCEPTIONS
    ]
