import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.errors import InvalidField, MalformedCall, NestedTooDeep
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
    body, _ = DIALECTS[dialect].forward(call, "m", "p")
    assert "fallbacks" not in body


@pytest.mark.parametrize("dialect", GOOD)
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b'{"a":"\xff"}', b"{\x00}", b'{"a":NaN}', b"{'a':1}", b"<html>"],
)
def test_a_body_that_is_not_a_json_object_is_malformed(dialect, body):
    with pytest.raises(MalformedCall):
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


@pytest.mark.parametrize(
    ("field", "twice"),
    [
        ("messages", b'"messages":[{"role":"user","content":"a"}],"messages":[{"role":"user","content":"b"}]'),
        ("content", b'"messages":[{"role":"user","content":"a","content":"b"}]'),
        ("content", rb'"messages":[{"role":"user","cont\u0065nt":"a","content":"b"}]'),
        ("content", b'"messages":[{"role":"user","content":[{"type":"text","text":"a"}],"content":"b"}]'),
        ("c", b'"messages":[{"role":"user","content":"b"}],"metadata":{"a":{"b":[{"c":"a","c":"b"}]}}'),
        ("model", b'"model":"a","messages":[{"role":"user","content":"b"}]'),
        ("content", b'"messages":[{"role":"user","content":"b","content":"b"}],"user":"\\":"'),
        ("content", rb'"messages":[{"role":"user","content":"\\","content":"\":\"b"}],"user":"\u003a"'),
    ],
)
def test_a_duplicate_field_of_a_call_is_refused_by_name(field, twice):
    with pytest.raises(InvalidField) as refused:
        DIALECTS["openai_chat"].decode(b'{"model":"m",' + twice + b"}")
    assert refused.value.extra["param"] == field


@pytest.mark.parametrize("field", ["Model", "STREAM", "N", "max_Tokens", "\u017ftream", "tool\u017f"])
def test_a_field_that_servers_may_read_for_the_gateways_own_is_refused(field):
    with pytest.raises(InvalidField) as refused:
        decode("openai_chat", user="u", **{field: 2})
    assert refused.value.extra["param"] == field


def test_names_of_other_fields_may_differ_in_case():
    assert decode("openai_chat", metadata={"a": 1, "A": 2, "Model": 3}, X=1, x=2).body["metadata"]["A"] == 2


def test_a_duplicate_of_a_deeply_nested_unknown_field_is_refused():
    for depth in range(900, 1100):
        with pytest.raises(BadRequest):
            DIALECTS["openai_chat"].decode(
                b'{"model":"m","messages":[{"role":"user"}],"x":%b1%b,"x":1}' % (b"[" * depth, b"]" * depth)
            )


def test_the_duplicate_field_of_a_long_body_is_not_named():
    with pytest.raises(InvalidField, match="A field occurs twice"):
        DIALECTS["openai_chat"].decode(b'{"model":"m","messages":[{"role":"user"}],"a":1,"a":"%b"}' % (b"a" * 100_000))


@pytest.mark.parametrize(
    ("number", "exact"),
    [("1", True), ("0.50", True), ("-0", True), ("5e-1", True), ("1E+2", True), ("1e-30", True), ("[0.1, 0.2]", True),
     ("0.1234567890123456", True), ('"0.50000000000000000000000004"', True), ("1e-400", False),
     ("1E-411111111", False), ("0.50000000000000000000000004", False), ("4111111111111111111.0", False),
     ("41111111111111110e-1", False)],
)  # fmt: skip
def test_numbers_with_too_many_digits_are_marked_as_inexact(number, exact):
    for space in (b"", b" "):
        for text in (b"hi", rb"h\u00e9", b'\\"e400:1234567890123456'):
            body = b'{"model":"m","messages":[{"role":"user","content":"%b"}],"x":%b[%b]}'
            call = DIALECTS["openai_chat"].decode(body % (text, space, number.encode()))
            assert call.exact is exact


def test_numbers_reach_the_provider_as_they_came():
    sent = {"seed": 123456789012345678901234567890, "temperature": 0.1, "logit_bias": {"5": -100}}
    body, _ = DIALECTS["openai_chat"].forward(decode("openai_chat", **sent), "m", "p")
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
def test_any_body_is_decoded_and_converted_or_refused_with_400(dialect, changes, messages):
    body = {**GOOD[dialect], **changes}
    if messages is not None:
        body["messages"] = messages
    try:
        spoken = DIALECTS[dialect]
        call = spoken.decode(msgspec.json.encode(body))
        spoken.forward(call, "m", "p")
        if spoken.operation == "chat":
            request = spoken.to_internal(call)
            for other in ("openai_chat", "anthropic_messages"):
                msgspec.json.encode(DIALECTS[other].from_internal(request))
    except BadRequest:
        pass


class Twice(Exception):
    pass


def once(members: list[tuple[str, object]]) -> dict[str, object]:
    if len(dict(members)) < len(members):
        raise Twice
    return dict(members)


#: Short texts of few characters, so that some names are equal. The characters are those that delimit names in JSON.
NAMES = st.text('a:"\\\n', max_size=3)
SPACE = st.sampled_from(["", " ", "\n\t"])
SPELLED = st.builds(
    lambda text, escaped: '"' + "".join(f"\\u{ord(c):04x}" for c in text) + '"' if escaped else json.dumps(text),
    NAMES,
    st.booleans(),
)
SPELLED_JSON = st.recursive(
    SPELLED | st.sampled_from(["1", "0.50", "-1e5", "null"]),
    lambda inner: (
        st.builds(lambda items, space: f"[{space}{f',{space}'.join(items)}]", st.lists(inner, max_size=3), SPACE)
        | st.builds(
            lambda members, space: "{" + f"{space},".join(f"{name}{space}:{value}" for name, value in members) + "}",
            st.lists(st.tuples(SPELLED, inner), max_size=4),
            SPACE,
        )
    ),
    max_leaves=12,
)


@given(SPELLED_JSON)
def test_a_duplicate_field_is_found_in_any_spelling(spelled):
    body = f'{{"model":"m","messages":[{{"role":"user","content":"a"}}],"x":{spelled}}}'.encode()
    try:
        read = json.loads(body, object_pairs_hook=once)
    except Twice:
        with pytest.raises(InvalidField, match="occurs twice"):
            DIALECTS["openai_chat"].decode(body)
    else:
        assert DIALECTS["openai_chat"].decode(body).body == read


@given(st.binary(max_size=60))
def test_any_bytes_are_a_400_or_fine(data):
    with pytest.raises(BadRequest):
        DIALECTS["openai_chat"].decode(data)
