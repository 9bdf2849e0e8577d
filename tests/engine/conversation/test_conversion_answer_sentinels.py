"""A conversion of an answer loses nothing without a word: each value is in the client's answer, or its part is named.

Signatures are not for the reader of an answer: only clients that can send them back receive them. The numbers of
reasoning tokens and of tokens written to a cache are parts of other numbers.
"""

import re
from collections.abc import Iterable
from functools import partial
from typing import Any

import msgspec
import pytest
from tests.support.sentinel_answers import (
    BLOCKS_IN_ONE_PIECE,
    CACHED_TOKENS,
    CALL_ID,
    OUTPUT_TOKENS,
    PARTS,
    REASONING_TOKENS,
    STREAMS,
    WHOLE,
    WRITTEN_TOKENS,
)

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.form import Completion, Reasoning
from gatehouse.engine.providers.registry import SPOKEN
from gatehouse.engine.providers.streams import LOST_REASONING, Converting

_MESSAGES = [{"role": "user", "content": "x"}]
#: requests of clients that show reasoning, and of clients that do not
CLIENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("openai_chat", {"messages": _MESSAGES, "stream_options": {"include_usage": True}}),
    "responses": ("openai_responses", {"input": "x"}),
    "responses with reasoning": ("openai_responses", {
        "input": "x", "reasoning": {"summary": "auto"}, "include": ["reasoning.encrypted_content"],
    }),
    "messages": ("anthropic_messages", {"messages": _MESSAGES, "max_tokens": 9000}),
    "messages with thinking": ("anthropic_messages", {
        "messages": _MESSAGES, "max_tokens": 9000, "thinking": {"type": "enabled", "budget_tokens": 2000},
    }),
}  # fmt: skip
PAIRS = [(client, spoken) for spoken in WHOLE for client, (dialect, _) in CLIENTS.items() if dialect != spoken]
_SENTINEL = re.compile(rb"snt-[a-z-]+")
_COMMENT = re.compile(rb": X-Gateway-Dropped: (\S+)\n\n")
_SIGNATURE = "snt-signature"


def whole(client: str, spoken: str, answer: bytes) -> tuple[bytes, set[str]]:
    """Return the client's answer, and the names of the lost parts."""
    dialect, call = decoded(client)
    completion = SPOKEN[spoken].parse_reply(answer)
    assert isinstance(completion, Completion)
    hidden = [part for part in completion.parts if isinstance(part, Reasoning) and dialect.hides(part, call)]
    return dialect.render_reply(completion, call), {*completion.lost, *([LOST_REASONING] if hidden else [])}


def streamed(client: str, spoken: str, events: Iterable[bytes]) -> tuple[bytes, set[str]]:
    """Return the client's events, and the names of the lost parts in their comment."""
    dialect, call = decoded(client, stream=True)
    stream = Converting(
        SPOKEN[spoken].stream_reader(), dialect.stream_writer(call), "m", partial(dialect.hides, call=call)
    )
    sent = b"".join([*(stream.push(event) for event in events), stream.end()])
    names = {name for comment in _COMMENT.findall(sent) for name in comment.decode().split(",")}
    return _COMMENT.sub(b"", sent), names


def decoded(client: str, **more: Any) -> tuple[Any, Any]:
    name, body = CLIENTS[client]
    dialect = DIALECTS[name]
    return dialect, dialect.decode(msgspec.json.encode({"model": "m", **body, **more}))


def unnamed(answer: bytes, received: bytes, names: set[str]) -> set[str]:
    """Return the values of an answer that the client does not receive, and whose part has no name."""
    values = {value.decode() for value in _SENTINEL.findall(answer)} - {_SIGNATURE}
    return {value for value in values if value.encode() not in received and PARTS.get(value) not in names}


@pytest.mark.parametrize(("client", "spoken"), PAIRS)
@pytest.mark.parametrize("stream", [False, True])
def test_each_value_of_an_answer_is_received_or_its_part_is_named(client: str, spoken: str, stream: bool) -> None:
    if stream:
        answer = b"".join(STREAMS[spoken])
        received, names = streamed(client, spoken, STREAMS[spoken])
    else:
        answer = msgspec.json.encode(WHOLE[spoken])
        received, names = whole(client, spoken, answer)
    assert not unnamed(answer, received, names), (names, received)
    # A name is not a substitute for a part that the client receives.
    assert not {value for value, name in PARTS.items() if name in names and value.encode() in received}
    assert CALL_ID.encode() in received
    numbers = {int(number) for number in re.findall(rb"\d{4,}", received)}
    assert {CACHED_TOKENS, OUTPUT_TOKENS} <= numbers
    dialect = CLIENTS[client][0]
    if spoken in ("anthropic_messages", "bedrock_converse"):
        assert WRITTEN_TOKENS in numbers
    elif dialect != "anthropic_messages":
        assert REASONING_TOKENS in numbers
    finish = {
        "openai_chat": b'"content_filter"' if spoken == "anthropic_messages" else b'"tool_calls"',
        "openai_responses": b'"incomplete"' if spoken == "anthropic_messages" else b'"completed"',
        "anthropic_messages": b'"tool_use"',
    }
    assert finish[dialect] in received


@pytest.mark.parametrize(("client", "signed"), [
    ("chat", True), ("responses", True), ("messages", False),
])  # fmt: skip
def test_the_signature_of_a_call_reaches_clients_that_can_return_it(client: str, signed: bool) -> None:
    received, _ = whole(client, "gemini_generate", msgspec.json.encode(WHOLE["gemini_generate"]))
    assert (_SIGNATURE.encode() in received) is signed


@pytest.mark.parametrize("spoken", ["openai_chat", "mistral_chat"])
def test_the_signature_of_a_call_is_read_from_the_openai_form(spoken: str) -> None:
    received, _ = whole("responses", spoken, msgspec.json.encode(WHOLE[spoken]))
    assert _SIGNATURE.encode() in received
    received, _ = streamed("responses", spoken, STREAMS[spoken])
    assert _SIGNATURE.encode() in received


@pytest.mark.parametrize("client", ["chat", "responses with reasoning"])
def test_blocks_that_begin_with_their_content_are_complete(client: str) -> None:
    received, names = streamed(client, "anthropic_messages", BLOCKS_IN_ONE_PIECE)
    assert not unnamed(b"".join(BLOCKS_IN_ONE_PIECE), received, names), (names, received)
    assert names == {"answer.citations"}
