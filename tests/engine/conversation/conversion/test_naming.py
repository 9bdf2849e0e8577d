"""In answers that are passed through, only the model's name is replaced. All other bytes stay the same."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatehouse.engine.conversation.conversion import naming
from gatehouse.engine.conversation.conversion.naming import EventNames

REQUESTED_MODEL = "own/my-model"
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "model", "b"]), inner, max_size=3)
    ),
    max_leaves=8,
)
_FIELDS = st.lists(
    st.tuples(st.sampled_from(["id", "object", "choices", "usage", "data"]), _VALUES),
    max_size=4,
    unique_by=lambda f: f[0],
)


@st.composite
def _answers(draw: st.DrawFn) -> dict[str, object]:
    """An answer with the field `model` at any position, or without it."""
    fields = draw(_FIELDS)
    if draw(st.booleans()):
        fields.insert(draw(st.integers(0, len(fields))), ("model", draw(st.text())))
    return dict(fields)


def _renamed(answer: dict[str, object]) -> dict[str, object]:
    return {**answer, "model": REQUESTED_MODEL} if "model" in answer else answer


@given(_answers(), st.booleans())
def test_only_the_top_levels_model_changes_in_a_body(answer: dict[str, object], spaces: bool) -> None:
    body = json.dumps(answer, separators=None if spaces else (",", ":")).encode()
    shown = naming.in_body(body, REQUESTED_MODEL)
    assert list(json.loads(shown).items()) == list(_renamed(answer).items())


@given(st.lists(_answers(), max_size=5))
def test_only_the_top_levels_model_changes_in_events(answers: list[dict[str, object]]) -> None:
    block = b"".join(b"data: " + json.dumps(answer).encode() + b"\n\n" for answer in answers) + b"data: [DONE]\n\n"
    *events, done, end = EventNames(REQUESTED_MODEL).in_block(block).split(b"\n\n")
    assert (done, end) == (b"data: [DONE]", b"")
    assert [json.loads(event[6:]) for event in events] == [_renamed(answer) for answer in answers]


@pytest.mark.parametrize(
    "body",
    [
        b'{"id":"a", "model" : "gpt-4o" ,"n":1e400,"choices":[{"text":"\\"model\\":\\"x\\""}]}',
        b'{"data":[{"model":"inner"}],"model":"gpt-4o","usage":{"total":1.10}}\n',
    ],
)
def test_all_other_bytes_stay(body: bytes) -> None:
    assert naming.in_body(body, REQUESTED_MODEL) == body.replace(b'"gpt-4o"', b'"own/my-model"')


@pytest.mark.parametrize("body", [b"", b"[]", b'{"id":1', b'{"choices":[{"model":"m"}]}'])
def test_a_body_without_a_model_at_the_top_level_is_unchanged(body: bytes) -> None:
    assert naming.in_body(body, REQUESTED_MODEL) == body


def test_a_model_that_is_no_text_is_replaced() -> None:
    assert naming.in_body(b'{"model":5}', REQUESTED_MODEL) == b'{"model":"own/my-model"}'


def test_a_stream_whose_first_chunk_names_no_model_is_named_throughout() -> None:
    names = EventNames(REQUESTED_MODEL)
    blocks = [
        b'data: {"model":"","x":1}\n\n',
        b'data: {"model":"gpt-4o"}\n\n' * 3,
        b'data: {"choices":[],"model":"z"}\n\n',
    ]
    shown = b"".join(map(names.in_block, blocks))
    assert [json.loads(event[6:])["model"] for event in shown.strip().split(b"\n\n")] == [REQUESTED_MODEL] * 5


def test_anthropics_message_is_named_inside_its_event() -> None:
    event = b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","model":"claude","n":1.50}}\n\n'
    assert naming.in_object(event, "message", REQUESTED_MODEL) == event.replace(b'"claude"', b'"own/my-model"')
