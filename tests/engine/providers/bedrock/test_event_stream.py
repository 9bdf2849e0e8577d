"""The binary framing of Bedrock's streams, compared with botocore's reader."""

import itertools
import struct
from zlib import crc32

import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given
from hypothesis import strategies as st
from tests.support.vendors.bedrock import event, frame

from gatehouse.engine.conversation.sse import MAX_EVENT_BYTES
from gatehouse.engine.providers.bedrock.event_stream import BadFrame, Frames

MESSAGES = [
    ({":event-type": "messageStart", "x": "ä" * 40}, b"{}"),
    ({}, b""),
    ({":message-type": "event"}, b"\x00" * 300),
]
WHOLE = b"".join(frame(headers, payload) for headers, payload in MESSAGES)


def read(pieces: list[bytes]) -> list[tuple[dict[str, str], bytes]]:
    frames = Frames()
    results = [(dict(one.headers), one.payload) for piece in pieces for one in frames.push(piece)]
    assert frames.empty
    return results


def with_header(kind: int, value: bytes) -> bytes:
    headers = b"\x01n" + bytes([kind]) + value + b"\x01t\x07\x00\x01x"
    prelude = struct.pack("!II", 16 + len(headers), len(headers))
    prelude += struct.pack("!I", crc32(prelude))
    return prelude + headers + struct.pack("!I", crc32(prelude + headers))


def test_frames_are_read_as_botocore_reads_them() -> None:
    buffer = EventStreamBuffer()
    buffer.add_data(WHOLE)
    assert read([WHOLE]) == MESSAGES == [(message.headers, message.payload) for message in buffer]


@given(cuts=st.lists(st.integers(0, len(WHOLE)), max_size=8))
def test_frames_are_the_same_however_they_are_cut(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(WHOLE)]
    assert read([WHOLE[start:end] for start, end in itertools.pairwise(places)]) == MESSAGES


def test_frames_byte_by_byte() -> None:
    assert read([WHOLE[at : at + 1] for at in range(len(WHOLE))]) == MESSAGES


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (0, b""), (1, b""), (2, b"1"), (3, b"12"), (4, b"1234"), (5, b"12345678"),
        (6, b"\x00\x03abc"), (8, b"12345678"), (9, b"x" * 16),
    ],
)  # fmt: skip
def test_headers_of_every_type_are_skipped(kind: int, value: bytes) -> None:
    data = with_header(kind, value)
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    (message,) = buffer
    assert message.headers["t"] == "x"
    assert read([data]) == [({"t": "x"}, b"")]


@pytest.mark.parametrize("at", range(len(event("metadata", {}))))
def test_a_changed_byte_is_detected(at: int) -> None:
    good, bad = event("messageStart", {}), bytearray(event("metadata", {}))
    bad[at] ^= 0x20
    results = []
    with pytest.raises(BadFrame):
        for one in Frames().push(good + bytes(bad)):
            results.append(one.headers[":event-type"])
    assert results == ["messageStart"]


@pytest.mark.parametrize(("size", "headers"), [(MAX_EVENT_BYTES + 1, 0), (15, 0), (40, 25), (0, 0)])
def test_invalid_lengths_are_refused_at_once(size: int, headers: int) -> None:
    prelude = struct.pack("!II", size, headers)
    with pytest.raises(BadFrame, match="lengths"):
        list(Frames().push(prelude + struct.pack("!I", crc32(prelude))))


@pytest.mark.parametrize(("kind", "value"), [(10, b""), (7, b"\xff\xff"), (7, b"\x00\x01\xff"), (5, b"1")])
def test_invalid_headers_are_refused(kind: int, value: bytes) -> None:
    with pytest.raises(BadFrame):
        list(Frames().push(with_header(kind, value)))


def test_an_incomplete_frame_is_detected() -> None:
    frames = Frames()
    assert not list(frames.push(WHOLE[:-1]))[2:]
    assert not frames.empty
