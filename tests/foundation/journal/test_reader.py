import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from gatehouse.foundation.journal import Backlog, Batch, Damage, JournalReader, JournalWriter, Position, files
from gatehouse.foundation.journal.files import segment_path, segments
from gatehouse.foundation.journal.framing import frame

LINE = len(frame(b"%030d" % 0))


@pytest.fixture
async def writer(tmp_path: Path) -> AsyncIterator[JournalWriter]:
    writer = JournalWriter(tmp_path, segment_bytes=3 * LINE)
    yield writer
    await writer.close()


@pytest.fixture
def reader(tmp_path: Path) -> JournalReader:
    return JournalReader(tmp_path)


async def write(writer: JournalWriter, *numbers: int) -> None:
    for number in numbers:
        await writer.append(b"%030d" % number)


def numbers(batch: Batch) -> list[int]:
    return [int(entry.payload) for entry in batch.entries]


def test_an_empty_journal_has_nothing_to_store(reader: JournalReader) -> None:
    assert not reader.batch()
    assert reader.backlog() == []


async def test_a_reader_follows_a_living_writer_over_its_segments(writer: JournalWriter, reader: JournalReader) -> None:
    seen: list[int] = []
    for start in range(0, 20, 2):
        await write(writer, start, start + 1)
        batch = reader.batch()
        seen += numbers(batch)
        reader.release(batch)
        assert not reader.batch()
    assert seen == list(range(20))


async def test_an_entry_contains_the_offset_of_the_next_one(writer: JournalWriter, reader: JournalReader) -> None:
    await write(writer, 0, 1, 2, 3)
    batch = reader.batch()
    assert [(entry.segment, entry.offset_end) for entry in batch.entries] == [
        (1, LINE), (1, 2 * LINE), (1, 3 * LINE), (2, LINE)
    ]  # fmt: skip
    assert {entry.writer_id for entry in batch.entries} == {writer.writer_id}
    assert batch.positions == {writer.writer_id: Position(2, LINE)}


async def test_unconfirmed_records_are_read_again(writer: JournalWriter, reader: JournalReader) -> None:
    await write(writer, 0, 1)
    assert numbers(reader.batch()) == [0, 1]
    await write(writer, 2)
    assert numbers(reader.batch()) == [0, 1, 2]


async def test_a_new_reader_continues_at_the_stored_positions(
    writer: JournalWriter, reader: JournalReader, tmp_path: Path
) -> None:
    await write(writer, 0, 1, 2, 3)
    stored = reader.batch(max_records=2).positions
    second_reader = JournalReader(tmp_path)
    second_reader.resume(stored)
    assert numbers(second_reader.batch()) == [2, 3]


async def test_a_batch_that_stops_at_a_limit_has_more(writer: JournalWriter, reader: JournalReader) -> None:
    await write(writer, *range(10))
    seen: list[int] = []
    sizes: list[int] = []
    while batch := reader.batch(max_records=4):
        seen += numbers(batch)
        sizes.append(len(batch.entries))
        assert batch.more is (len(seen) < 10)
        reader.release(batch)
    assert (seen, sizes) == (list(range(10)), [4, 4, 2])


async def test_a_batch_is_limited_in_bytes(writer: JournalWriter, reader: JournalReader) -> None:
    await write(writer, *range(5))
    batch = reader.batch(max_bytes=LINE + 1)
    assert numbers(batch) == [0, 1]
    assert batch.more


async def test_a_busy_writer_does_not_reduce_the_share_of_other_writers(writer: JournalWriter, tmp_path: Path) -> None:
    quiet = JournalWriter(tmp_path)
    await write(writer, *range(100))
    await write(quiet, 500, 501)
    reader = JournalReader(tmp_path)
    for _ in range(2):
        assert {500, 501} <= set(numbers(reader.batch(max_records=10)))
        assert len(reader.batch(max_records=10).entries) <= 10
    await quiet.close()


async def test_a_line_that_is_still_being_written_waits(
    writer: JournalWriter, reader: JournalReader, tmp_path: Path
) -> None:
    await write(writer, 0)
    growing = segment_path(tmp_path / str(writer.writer_id), 1)
    line = frame(b"%030d" % 1)
    with growing.open("ab", buffering=0) as file:
        file.write(line[:20])
        assert numbers(reader.batch()) == [0]
        file.write(line[20:])
    batch = reader.batch()
    assert numbers(batch) == [0, 1]
    assert not batch.damage


async def test_a_writer_is_finished_once_it_is_dead_and_read_to_the_end(
    writer: JournalWriter, reader: JournalReader, tmp_path: Path
) -> None:
    await write(writer, *range(5))
    assert reader.batch().finished == []
    await writer.close()
    first = reader.batch(max_records=4)
    assert first.finished == []
    assert reader.release(first) == []
    last = reader.batch()
    assert numbers(last) == [4]
    assert last.finished == [writer.writer_id]
    assert reader.release(last) == [writer.writer_id]
    assert not (tmp_path / str(writer.writer_id)).exists()
    assert not reader.batch()


async def test_a_dead_writer_is_finished_again_when_the_keeper_died_before_it_could_delete(
    writer: JournalWriter, reader: JournalReader, tmp_path: Path
) -> None:
    await write(writer, 0)
    await writer.close()
    stored = reader.batch().positions
    second_reader = JournalReader(tmp_path)
    second_reader.resume(stored)
    batch = second_reader.batch()
    assert (batch.entries, batch.finished) == ([], [writer.writer_id])
    assert second_reader.release(batch) == [writer.writer_id]


async def test_a_release_deletes_only_the_segments_before_the_position(
    writer: JournalWriter, reader: JournalReader, tmp_path: Path
) -> None:
    await write(writer, *range(8))
    directory = tmp_path / str(writer.writer_id)
    assert list(segments(directory)) == [1, 2, 3]
    reader.release(reader.batch(max_records=5))
    assert list(segments(directory)) == [2, 3]
    reader.release(reader.batch())
    assert list(segments(directory)) == [3]
    await write(writer, 8, 9, 10)
    assert numbers(reader.batch()) == [8, 9, 10]


async def test_a_damaged_line_is_reported_and_skipped(
    writer: JournalWriter, reader: JournalReader, tmp_path: Path
) -> None:
    await write(writer, *range(6))
    path = segment_path(tmp_path / str(writer.writer_id), 1)
    content = bytearray(path.read_bytes())
    content[LINE + 12] ^= 1
    path.write_bytes(content)
    batch = reader.batch()
    assert numbers(batch) == [0, 2, 3, 4, 5]
    assert batch.damage == [Damage(writer.writer_id, 1, LINE, LINE, torn=False)]
    reader.release(batch)
    assert not reader.batch()


async def test_a_damaged_line_at_the_end_is_reported_once(
    writer: JournalWriter, reader: JournalReader, tmp_path: Path
) -> None:
    await write(writer, 0)
    with segment_path(tmp_path / str(writer.writer_id), 1).open("ab", buffering=0) as file:
        file.write(b"garbage\n")
    batch = reader.batch()
    assert len(batch.damage) == 1
    reader.release(batch)
    assert not reader.batch()


async def test_the_torn_end_of_a_dead_writer_is_not_a_record(
    writer: JournalWriter, reader: JournalReader, tmp_path: Path
) -> None:
    await write(writer, 0)
    with segment_path(tmp_path / str(writer.writer_id), 1).open("ab", buffering=0) as file:
        file.write(frame(b"%030d" % 1)[:-1])
    await writer.close()
    batch = reader.batch()
    assert numbers(batch) == [0]
    assert batch.damage == [Damage(writer.writer_id, 1, LINE, LINE - 1, torn=True)]
    assert batch.finished == [writer.writer_id]


async def test_a_position_beyond_the_file_is_its_end(
    writer: JournalWriter, reader: JournalReader, tmp_path: Path
) -> None:
    """After a loss of power, the file may lack records that the database already has."""
    await write(writer, 0)
    await writer.close()
    reader.resume({writer.writer_id: Position(1, 10 * LINE)})
    batch = reader.batch()
    assert (batch.entries, batch.positions, batch.finished) == ([], {}, [writer.writer_id])
    assert reader.backlog() == [Backlog(writer.writer_id, False, 0)]


async def test_the_backlog_counts_unconfirmed_records(writer: JournalWriter, reader: JournalReader) -> None:
    await write(writer, *range(7))
    assert reader.backlog() == [Backlog(writer.writer_id, True, 7 * LINE)]
    reader.release(reader.batch(max_records=5))
    assert reader.backlog() == [Backlog(writer.writer_id, True, 2 * LINE)]


def test_a_home_has_one_keeper(reader: JournalReader, tmp_path: Path) -> None:
    second_reader = JournalReader(tmp_path)
    assert reader.claim()
    assert reader.claim()
    assert not second_reader.claim()
    reader.close()
    assert second_reader.claim()
    second_reader.close()


async def test_an_old_directory_of_a_failed_start_is_removed(
    writer: JournalWriter, reader: JournalReader, tmp_path: Path
) -> None:
    young, old = tmp_path / ".new-young", tmp_path / ".new-old"
    for directory in (young, old):
        directory.mkdir()
        (directory / "lock").touch()
    os.utime(old, (time.time() - 7200,) * 2)
    reader.clean()
    assert young.exists()
    assert not old.exists()
    assert (tmp_path / str(writer.writer_id)).exists()


async def test_records_that_a_follower_has_not_read_are_not_deleted(
    writer: JournalWriter, reader: JournalReader, tmp_path: Path
) -> None:
    follower = reader.follower()
    await write(writer, *range(9))
    directory = tmp_path / str(writer.writer_id)
    assert reader.release(reader.batch()) == []
    assert list(segments(directory)) == [1, 2, 3]
    follower.release(follower.batch(4))
    assert list(segments(directory)) == [2, 3]
    await writer.close()
    assert reader.release(reader.batch()) == []
    assert not reader.batch()
    assert numbers(last := follower.batch()) == [4, 5, 6, 7, 8]
    assert follower.release(last) == [writer.writer_id]
    assert not directory.exists()
    # The first reader also reports the deleted writer.
    assert reader.release(Batch()) == [writer.writer_id]


async def test_records_are_deleted_only_after_both_readers_have_confirmed_them(
    writer: JournalWriter, reader: JournalReader, tmp_path: Path
) -> None:
    follower = reader.follower()
    await write(writer, *range(9))
    await writer.close()
    assert follower.release(follower.batch()) == []
    assert not follower.batch()
    assert list(segments(tmp_path / str(writer.writer_id))) == [1, 2, 3]
    assert reader.release(reader.batch()) == [writer.writer_id]


async def test_a_new_reader_skips_writers_that_only_a_follower_still_needs(
    writer: JournalWriter, reader: JournalReader, tmp_path: Path
) -> None:
    await write(writer, 0)
    await writer.close()
    reader.pass_over([writer.writer_id])
    follower = reader.follower()
    assert not reader.batch()
    assert follower.release(follower.batch()) == [writer.writer_id]


def test_records_of_a_writer_that_dies_during_a_read_are_not_skipped(
    reader: JournalReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader checks whether the writer lives before it lists the segments. Records that are written between the two
    steps are read in the next batch."""
    directory = tmp_path / str(uuid4())
    directory.mkdir()
    lock = files.lock(directory / files.LOCK)
    segment_path(directory, 1).write_bytes(frame(b"%030d" % 0))

    def last_words(directory: Path) -> dict[int, int]:
        listed = segments(directory)
        if 2 not in listed:
            segment_path(directory, 2).write_bytes(frame(b"%030d" % 1))
            os.close(lock)
        return listed

    monkeypatch.setattr(files, "segments", last_words)
    first = reader.batch()
    reader.release(first)
    assert (numbers(first), first.finished) == ([0], [])
    second = reader.batch()
    assert (numbers(second), len(second.finished)) == ([1], 1)
