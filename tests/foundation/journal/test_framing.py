import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatehouse.foundation.journal.framing import MAX_LINE_BYTES, frame, read_lines, unframe

records = st.binary(max_size=200).map(lambda raw: raw.replace(b"\n", b"\r"))


def read(path: Path, content: bytes, *, sealed: bool, offset: int = 0) -> list[tuple[int, bytes | None, bool]]:
    path.write_bytes(content)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return list(read_lines(descriptor, offset, sealed=sealed))
    finally:
        os.close(descriptor)


@given(records)
def test_a_line_contains_its_record(record: bytes) -> None:
    line = frame(record)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert unframe(line[:-1]) == record


@given(records, st.data())
def test_a_line_with_one_changed_bit_is_not_a_record(record: bytes, data: st.DataObject) -> None:
    line = bytearray(frame(record)[:-1])
    line[data.draw(st.integers(0, len(line) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert unframe(bytes(line)) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(records, max_size=8), st.data())
def test_a_truncated_file_yields_the_complete_lines(tmp_path: Path, written: list[bytes], data: st.DataObject) -> None:
    content = b"".join(map(frame, written))
    cut = data.draw(st.integers(0, len(content)))
    complete_lines = content[:cut].count(b"\n")
    for sealed in (False, True):
        lines = read(tmp_path / "cut.log", content[:cut], sealed=sealed)
        assert [record for _, record, torn in lines if not torn] == written[:complete_lines]
        assert all(lines[at][0] == len(b"".join(map(frame, written[: at + 1]))) for at in range(complete_lines))
        torn_bytes = cut - len(b"".join(map(frame, written[:complete_lines])))
        assert [(end, record) for end, record, torn in lines if torn] == (
            [(cut, None)] if sealed and torn_bytes else []
        )


def test_reading_continues_at_an_offset(tmp_path: Path) -> None:
    content = frame(b"one") + frame(b"two")
    assert read(tmp_path / "a.log", content, sealed=False, offset=len(frame(b"one"))) == [(len(content), b"two", False)]


@pytest.mark.parametrize("sealed", [False, True])
def test_records_after_damage_longer_than_any_line_are_read(tmp_path: Path, sealed: bool) -> None:
    zeros = bytes(MAX_LINE_BYTES + 5)
    content = frame(b"one") + zeros + b"\n" + frame(b"two")
    lines = read(tmp_path / "zeros.log", content, sealed=sealed)
    assert [record for _, record, _ in lines if record is not None] == [b"one", b"two"]
    assert not any(torn for _, _, torn in lines)
    assert lines[-1][0] == len(content)
