"""Usage in answers and streams that are passed through, in classes of tokens that do not overlap."""

import msgspec
import pytest

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.errors import NotConvertible
from gatehouse.engine.conversation.sse import frame
from gatehouse.engine.conversation.usage import Usage

OPENAI, ANTHROPIC = DIALECTS["openai_chat"], DIALECTS["anthropic_messages"]


def chat(stream=True, **more):
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": stream, **more}
    return OPENAI.decode(msgspec.json.encode(body))


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}, Usage(input_tokens=10, output_tokens=3)),
        (
            {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}},
            Usage(input_tokens=2, cached_tokens=8, output_tokens=3),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 99}},
            Usage(input_tokens=0, cached_tokens=10, output_tokens=3),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": None, "prompt_tokens_details": {"cached_tokens": None}},
            Usage(input_tokens=10),
        ),
        ({"prompt_tokens": 10, "prompt_tokens_details": None}, Usage(input_tokens=10)),
        # OpenAI counts reasoning tokens in the completion. Some other providers count them separately.
        (
            {
                "prompt_tokens": 10, "completion_tokens": 30, "total_tokens": 40,
                "completion_tokens_details": {"reasoning_tokens": 20},
            },
            Usage(input_tokens=10, output_tokens=30, reasoning_tokens=20),
        ),
        (
            {
                "prompt_tokens": 10, "completion_tokens": 30, "total_tokens": 60,
                "completion_tokens_details": {"reasoning_tokens": 20},
            },
            Usage(input_tokens=10, output_tokens=50, reasoning_tokens=20),
        ),
    ],
)  # fmt: skip
def test_cached_tokens_are_taken_out_of_openais_prompt_tokens(reported, usage):
    assert OPENAI.check_reply(msgspec.json.encode({"choices": [], "usage": reported})) == usage


def test_anthropics_token_counts_are_disjoint():
    body = {
        "input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": 11, "cache_creation_input_tokens": 13,
        "service_tier": "standard",
    }  # fmt: skip
    assert ANTHROPIC.check_reply(msgspec.json.encode({"content": [], "usage": body})) == Usage(
        input_tokens=5, output_tokens=7, cached_tokens=11, cache_write_tokens=13
    )


@pytest.mark.parametrize("dialect", ["openai_chat", "anthropic_messages", "openai_embeddings"])
@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"choices":[', b'{"usage":{}}', b"\xff"])
def test_an_answer_of_the_wrong_form_is_refused(dialect, body):
    with pytest.raises(NotConvertible):
        DIALECTS[dialect].check_reply(body)


def test_an_answer_without_usage_has_none():
    assert OPENAI.check_reply(b'{"choices":[]}') is None
    assert OPENAI.check_reply(b'{"choices":[],"usage":null}') is None


TEXT = frame(b'{"choices":[{"index":0,"delta":{"content":"say \\"usage\\":{ [DONE]"}}],"usage":null}')
STOP = frame(b'{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}')
TELLS = frame(b'{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}')
DONE = frame(b"[DONE]")


def test_usage_requested_only_by_the_gateway_is_not_sent_to_the_client():
    body, _ = OPENAI.forward(chat(), "m")
    tap = OPENAI.tap(chat(), "m")
    assert body["stream_options"] == {"include_usage": True}
    assert tap.take(TEXT + STOP + TELLS + DONE) == TEXT + STOP + DONE
    assert tap.usage == Usage(input_tokens=9, output_tokens=4)
    assert tap.complete()


@pytest.mark.parametrize("options", [{}, {"include_usage": False, "x": 1}, None])
def test_other_stream_options_are_kept(options):
    body, _ = OPENAI.forward(chat(stream_options=options), "m")
    assert body["stream_options"] == {**(options or {}), "include_usage": True}


def test_usage_requested_by_the_client_passes_unchanged():
    stream = TEXT + STOP + TELLS + DONE
    tap = OPENAI.tap(chat(stream_options={"include_usage": True}), "m")
    assert tap.take(stream) == stream
    assert tap.usage == Usage(input_tokens=9, output_tokens=4)


def test_usage_in_a_chunk_with_content_passes_and_the_last_usage_counts():
    both = frame(b'{"choices":[{"delta":{"content":"x"}}],"usage": {"prompt_tokens":9,"completion_tokens":1}}')
    tap = OPENAI.tap(chat(), "m")
    assert tap.take(both) == both
    assert tap.take(TELLS) == b""
    assert tap.usage == Usage(input_tokens=9, output_tokens=4)


def test_no_usage_is_requested_without_a_stream():
    body, _ = OPENAI.forward(chat(stream=False), "m")
    assert "stream_options" not in body


def test_a_stream_without_its_end_is_not_complete():
    tap = OPENAI.tap(chat(), "m")
    tap.take(TEXT)
    assert not tap.complete()
    tap.take(STOP)
    assert tap.complete()


@pytest.mark.parametrize(
    "fault",
    [
        b'{"error":{"message":"overloaded"}}',
        b'{"error":"overloaded"}',
        b'{"object":"error","message":"overloaded","code":500}',
        b'{"object": "error", "message": "overloaded"}',
    ],
)
def test_a_stream_ends_before_an_error_event(fault):
    tap = OPENAI.tap(chat(), "m")
    assert tap.take(TEXT + frame(fault) + DONE) == TEXT
    assert tap.fault == "overloaded"


def test_words_about_errors_are_no_error():
    tap = OPENAI.tap(chat(), "m")
    text = msgspec.json.encode({"choices": [{"delta": {"content": '{"error": "x"} {"object":"error"} event: error'}}]})
    assert tap.take(frame(text)) == frame(text)
    assert tap.fault is None


def test_usage_is_read_from_several_events_of_anthropics_stream():
    call = ANTHROPIC.decode(b'{"model":"m","max_tokens":5,"stream":true,"messages":[{"role":"user","content":"x"}]}')
    tap = ANTHROPIC.tap(call, "m")
    start = (
        b'{"type":"message_start","message":{"usage":{"input_tokens":5,"cache_read_input_tokens":3,"output_tokens":1}}}'
    )
    stream = (
        frame(start, "message_start")
        + frame(b'{"type":"message_delta","delta":{},"usage":{"output_tokens":8}}', "message_delta")
        + frame(b'{"type":"message_stop"}', "message_stop")
    )
    assert tap.take(stream) == stream
    assert tap.usage == Usage(input_tokens=5, cached_tokens=3, output_tokens=8)
    assert tap.complete()


def test_anthropics_error_event_stops_the_stream():
    call = ANTHROPIC.decode(b'{"model":"m","max_tokens":5,"stream":true,"messages":[{"role":"user","content":"x"}]}')
    tap = ANTHROPIC.tap(call, "m")
    ping = frame(b'{"type":"ping"}', "ping")
    assert tap.take(ping + frame(b'{"type":"error","error":{"message":"overloaded"}}', "error")) == ping
    assert tap.fault == "overloaded"


def test_usage_that_makes_no_sense_does_not_cost_the_answer():
    body = {"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": "ten"}}
    assert OPENAI.check_reply(msgspec.json.encode(body)) is None
