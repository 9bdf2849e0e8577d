import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.errors import InvalidField, MalformedBody, NestedTooDeep
from gatehouse.foundation.errors import BadRequest

MESSAGE = {"role": "user", "content": "hi"}
GOOD = {
    "openai_chat": {"model": "p/m", "messages": [MESSAGE]},
    "anthropic_messages": {"model": "p/m", "messages": [MESSAGE], "max_tokens": 10},
    "openai_embeddings": {"model": "p/m", "input": "hi"},
}


def decode(dialect: str, **changes):
    body = {**GOOD[dialect], **changes}
    return DIALECTS[dialect].decode(msgspec.json.encode({k: v for k, v in body.items() if v is not ...}))


@pytest.mark.parametrize("dialect", GOOD)
def test_a_good_body_is_decoded_and_unknown_fields_stay(dialect):
    call = decode(dialect, x_new={"a": [1]})
    assert (call.dialect, call.model, call.stream, call.fallbacks) == (dialect, "p/m", False, ())
    assert call.body["x_new"] == {"a": [1]}


@pytest.mark.parametrize("dialect", GOOD)
def test_fallbacks_are_the_gateways_own_and_never_sent_on(dialect):
    call = decode(dialect, fallbacks=["a/b", "c"])
    assert call.fallbacks == ("a/b", "c")
    assert "fallbacks" not in call.body
    body, _ = DIALECTS[dialect].forward(call, "m")
    assert "fallbacks" not in body


@pytest.mark.parametrize("dialect", GOOD)
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b'{"a":"\xff"}', b"{\x00}", b'{"a":NaN}', b"{'a':1}", b"<html>"],
)
def test_what_is_no_json_object_is_a_malformed_body(dialect, body):
    with pytest.raises(MalformedBody):
        DIALECTS[dialect].decode(body)


@pytest.mark.parametrize("dialect", GOOD)
@pytest.mark.parametrize("depth", [101, 600, 5_000, 200_000])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_deep_nesting_is_refused(dialect, depth, opening, closing):
    good = msgspec.json.encode(GOOD[dialect])[:-1]
    with pytest.raises(NestedTooDeep):
        DIALECTS[dialect].decode(good + b',"x":' + opening * depth + b"1" + closing * depth + b"}")


def test_many_brackets_that_are_not_deep_pass():
    call = decode("openai_chat", x=[[] for _ in range(1000)], y="[[{{" * 1000)
    assert len(call.body["x"]) == 1000


@pytest.mark.parametrize("dialect", GOOD)
@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"model": ...}, "model"),
        ({"model": None}, "model"),
        ({"model": 7}, "model"),
        ({"model": ""}, "model"),
        ({"model": "x" * 257}, "model"),
        ({"model": "a\nb"}, "model"),
        ({"model": "a\0b"}, "model"),
        ({"stream": "yes"}, "stream"),
        ({"stream": 1}, "stream"),
        ({"fallbacks": "p/m"}, "fallbacks"),
        ({"fallbacks": [1]}, "fallbacks[0]"),
        ({"fallbacks": ["ok", ""]}, "fallbacks[1]"),
        ({"fallbacks": ["m"] * 17}, "fallbacks"),
        ({"x": ["fine", {"deep": "a\0"}]}, "x[1].deep"),
        ({"x\0y": 1}, "body"),
    ],
)
def test_a_bad_field_is_named_in_every_dialect(dialect, changes, param):
    with pytest.raises(InvalidField) as refused:
        decode(dialect, **changes)
    assert refused.value.extra == {"param": param}
    assert refused.value.status == 400


@pytest.mark.parametrize(
    ("dialect", "changes", "param"),
    [
        ("openai_chat", {"messages": ...}, "messages"),
        ("openai_chat", {"messages": []}, "messages"),
        ("openai_chat", {"messages": "hi"}, "messages"),
        ("openai_chat", {"messages": ["hi"]}, "messages[0]"),
        ("openai_chat", {"messages": [MESSAGE, {"content": "x"}]}, "messages[1].role"),
        ("openai_chat", {"messages": [{"role": "king", "content": "x"}]}, "messages[0].role"),
        ("openai_chat", {"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        ("openai_chat", {"messages": [{"role": "user", "content": ["x"]}]}, "messages[0].content[0]"),
        ("openai_chat", {"tools": {}}, "tools"),
        ("openai_chat", {"stream_options": True}, "stream_options"),
        ("openai_chat", {"max_tokens": 0}, "max_tokens"),
        ("openai_chat", {"temperature": "hot"}, "temperature"),
        ("anthropic_messages", {"max_tokens": ...}, "max_tokens"),
        ("anthropic_messages", {"max_tokens": "10"}, "max_tokens"),
        ("anthropic_messages", {"messages": [{"role": "user"}]}, "messages[0].content"),
        ("anthropic_messages", {"system": 5}, "system"),
        ("openai_embeddings", {"input": ...}, "input"),
        ("openai_embeddings", {"input": []}, "input"),
        ("openai_embeddings", {"input": {"a": 1}}, "input"),
        ("openai_embeddings", {"encoding_format": "hex"}, "encoding_format"),
        ("openai_embeddings", {"stream": True}, "stream"),
    ],
)
def test_a_bad_field_of_a_dialect_is_named(dialect, changes, param):
    with pytest.raises(InvalidField) as refused:
        decode(dialect, **changes)
    assert refused.value.extra["param"] == param
    assert param in refused.value.text


def test_text_that_only_looks_like_an_escaped_nul_passes():
    text = r"write \u0000 in C"
    call = decode("openai_chat", messages=[{"role": "user", "content": text}])
    assert call.body["messages"][0]["content"] == text


def test_a_field_that_stands_twice_is_sent_on_as_it_was_checked():
    call = DIALECTS["openai_chat"].decode(
        b'{"model":"m","messages":[{"role":"user","content":"secret"}],"messages":[{"role":"user","content":"ok"}]}'
    )
    body, _ = DIALECTS["openai_chat"].forward(call, "m")
    assert b"secret" not in msgspec.json.encode(body)


def test_numbers_reach_the_provider_as_they_came():
    sent = {"seed": 123456789012345678901234567890, "temperature": 0.1, "logit_bias": {"5": -100}}
    body, _ = DIALECTS["openai_chat"].forward(decode("openai_chat", **sent), "m")
    assert {name: msgspec.json.decode(msgspec.json.encode(body))[name] for name in sent} == sent


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["model", "messages", "stream", "tools", "tool_choice", "max_tokens", "system", "input", "response_format", "stop",
     "stream_options", "fallbacks", "metadata", "output_config", "user", "temperature", "dimensions"]
)  # fmt: skip
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "tool", "system"]), "content": JSON},
        optional={"tool_calls": JSON, "tool_call_id": JSON},
    ),
    min_size=1,
    max_size=2,
)


@given(st.sampled_from(sorted(GOOD)), st.dictionaries(FIELDS, JSON, max_size=4), st.none() | MESSAGES)
def test_whatever_comes_is_decoded_and_converted_or_is_a_400(dialect, changes, messages):
    body = {**GOOD[dialect], **changes}
    if messages is not None:
        body["messages"] = messages
    try:
        spoken = DIALECTS[dialect]
        call = spoken.decode(msgspec.json.encode(body))
        spoken.forward(call, "m")
        if spoken.operation == "chat":
            request = spoken.to_internal(call)
            for other in ("openai_chat", "anthropic_messages"):
                msgspec.json.encode(DIALECTS[other].from_internal(request))
    except BadRequest:
        pass


@given(st.binary(max_size=60))
def test_any_bytes_are_a_400_or_fine(data):
    with pytest.raises(BadRequest):
        DIALECTS["openai_chat"].decode(data)
