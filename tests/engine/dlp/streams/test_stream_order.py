"""The client receives events in the order in which the provider sent them, even if some text is held back."""

import json
import re
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.engine.dlp.streams.test_stream_shapes import CHAT, DONE, MESSAGES, chunk, delta, passed
from tests.engine.dlp.test_streams import anthropic

#: Ends of pieces that may begin a match. They are held back until more text is known.
_TEXT = st.sampled_from(["It is ", "4111 ", "1111 1", "john", " Smith", ".", "\n", "sk-", "12", "a@"])
#: The label that replaces a finding. A few of the texts made from these pieces are findings.
_LABEL = re.compile(rb"\[[A-Z_]+_[0-9]+\]")


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


@st.composite
def _blocks(draw: st.DrawFn) -> list[bytes]:
    """Draw a message of blocks: thinking with its signature, text with citations, and calls of tools."""
    sent = [
        _event("message_start", message={"id": "m", "role": "assistant", "content": [], "usage": {"input_tokens": 1}})
    ]
    kinds = draw(st.lists(st.sampled_from(["thinking", "text", "tool_use"]), min_size=1, max_size=4))
    for index, kind in enumerate(kinds):
        pieces = draw(st.lists(_TEXT, min_size=1, max_size=5))
        block: dict[str, Any] = {"type": kind}
        field = {"thinking": "thinking", "text": "text", "tool_use": "partial_json"}[kind]
        name = {"thinking": "thinking_delta", "text": "text_delta", "tool_use": "input_json_delta"}[kind]
        if kind == "tool_use":
            block |= {"id": "t", "name": "f", "input": {}}
            pieces = ['{"a": "', *[piece.replace("\n", " ") for piece in pieces], '"}']
        else:
            block[field] = ""
        sent.append(_event("content_block_start", index=index, content_block=block))
        for piece in pieces:
            sent.append(_event("content_block_delta", index=index, delta={"type": name, field: piece}))
            if kind == "text" and draw(st.booleans()):
                cited = {"type": "citations_delta", "citation": {"type": "char_location", "cited_text": "so"}}
                sent.append(_event("content_block_delta", index=index, delta=cited))
            if draw(st.booleans()):
                sent.append(_event("ping"))
        if kind == "thinking":
            signed = {"type": "signature_delta", "signature": "QUJD" * 30}
            sent.append(_event("content_block_delta", index=index, delta=signed))
        sent.append(_event("content_block_stop", index=index))
    sent.append(_event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 3}))
    return [*sent, _event("message_stop")]


@st.composite
def _chunks(draw: st.DrawFn) -> list[bytes]:
    """Draw a chat of one choice, with empty chunks and annotations between its pieces of text."""
    sent = [chunk(delta(role="assistant", content=""))]
    for piece in draw(st.lists(_TEXT, min_size=1, max_size=8)):
        sent.append(chunk(delta(content=piece)))
        match draw(st.integers(0, 3)):
            case 0:
                sent.append(chunk(delta(content="")))
            case 1:
                sent.append(chunk(delta(annotations=[{"type": "url_citation", "url_citation": {"title": "so"}}])))
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return [*sent, chunk(delta(0, "stop")), chunk(usage=usage), DONE]


@pytest.mark.parametrize("options", [{}, {"stream_mode": "hold"}], ids=["passing", "held"])
@settings(max_examples=60, deadline=None)
@given(sent=_blocks())
async def test_a_messages_events_keep_their_order(sent: list[bytes], options: dict[str, Any]) -> None:
    raw = await passed(sent, MESSAGES, **options)
    assume(not _LABEL.search(raw))
    assert raw.split(b"\n\n") == b"".join(sent).split(b"\n\n")


@settings(max_examples=100, deadline=None)
@given(sent=_chunks())
async def test_a_chats_chunks_keep_their_order(sent: list[bytes]) -> None:
    # The client has not requested the usage.
    expected = sent[:-2] + sent[-1:]
    raw = await passed(sent, CHAT)
    assume(not _LABEL.search(raw))
    assert raw.split(b"\n\n") == b"".join(expected).split(b"\n\n")


async def test_a_signature_follows_the_text_that_it_signs() -> None:
    thought = {"type": "thinking_delta", "thinking": "The number is 4111 1111 "}
    signed = {"type": "signature_delta", "signature": "QUJD" * 30}
    events = [
        _event("content_block_start", index=0, content_block={"type": "thinking", "thinking": ""}),
        _event("content_block_delta", index=0, delta=thought),
        _event("content_block_delta", index=0, delta=signed),
        _event("content_block_stop", index=0),
    ]
    raw = await passed([*anthropic((), arguments=False)[:1], *events, *anthropic((), arguments=False)[-2:]], MESSAGES)
    assert raw.rindex(b"thinking_delta") < raw.index(b"signature_delta")
