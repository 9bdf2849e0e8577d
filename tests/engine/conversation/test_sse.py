import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatehouse.engine.conversation.sse import MAX_EVENT_BYTES, EventTooLarge, Splitter, data_of, event_at, events, frame

STREAM = b': hello\n\ndata: {"a":1}\n\nevent: x\ndata: one\ndata: two\n\nid: 7\ndata:\xc3\xa4\n\n'


@pytest.mark.parametrize("stream", [STREAM, STREAM.replace(b"\n", b"\r\n")])
def test_split_at_every_byte_the_events_are_the_same(stream):
    whole = list(events(stream))
    assert len(whole) == 4
    for cut in range(len(stream) + 1):
        splitter = Splitter()
        blocks = [splitter.push(part) for part in (stream[:cut], stream[cut:])]
        assert [event for block in blocks for event in events(block)] == whole
        assert splitter.take_rest() == b""


@given(st.lists(st.integers(0, 2 * len(STREAM)), max_size=12), st.booleans())
def test_split_anywhere_nothing_is_lost_and_only_whole_events_pass(cuts, crlf):
    stream = STREAM.replace(b"\n", b"\r\n") if crlf else STREAM
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    splitter = Splitter()
    blocks = [splitter.push(stream[start:end]) for start, end in itertools.pairwise(edges)]
    assert b"".join(blocks) == stream
    assert all(block.endswith((b"\n\n", b"\r\n\r\n")) for block in blocks if block)


def test_an_unfinished_event_is_held_back():
    splitter = Splitter()
    assert splitter.push(b"data: 1\n\ndata: 2\n") == b"data: 1\n\n"
    assert splitter.take_rest() == b"data: 2\n"


def test_an_event_without_end_is_refused():
    splitter = Splitter()
    with pytest.raises(EventTooLarge):
        for _ in range(100):
            splitter.push(b"data: " + b"x" * (MAX_EVENT_BYTES // 50))


def test_a_stream_may_be_longer_than_one_event():
    splitter = Splitter()
    assert sum(len(splitter.push(b"data: " + b"x" * 100_000 + b"\n\n")) for _ in range(50)) > 5_000_000


@pytest.mark.parametrize(
    ("event", "data"),
    [
        (b"data: x\n\n", b"x"),
        (b"data:x\r\n\r\n", b"x"),
        (b"event: a\ndata: x\ndata:  y\n\n", b"x\n y"),
        (b": comment\n\n", b""),
        (frame(b"{}", "name"), b"{}"),
    ],
)
def test_data_of_an_event(event, data):
    assert data_of(event) == data


@pytest.mark.parametrize("stream", [STREAM, STREAM.replace(b"\n", b"\r\n"), b"data: x\n\r\ndata: y\r\n\n"])
def test_the_event_around_any_position_is_found(stream):
    start = 0
    for event in events(stream):
        inside = event.rstrip(b"\r\n")
        for position in range(start, start + len(inside)):
            assert event_at(stream, position) == (start, start + len(event))
        start += len(event)
    assert start == len(stream)
