import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gatehouse.foundation.journal import MAX_RECORD_BYTES, JournalFull, JournalReader, JournalUnwritable, JournalWriter
from gatehouse.foundation.journal.files import segment_path, segments
from gatehouse.foundation.journal.framing import frame
from gatehouse.foundation.journal.writer import Sync

Open = Callable[..., JournalWriter]

both_syncs = pytest.mark.parametrize("sync", ["write", "fsync"])


@pytest.fixture
async def open_writer(tmp_path: Path) -> AsyncIterator[Open]:
    async with AsyncExitStack() as stack:

        def make(**options: object) -> JournalWriter:
            writer = JournalWriter(tmp_path, **options)  # type: ignore[arg-type]
            stack.push_async_callback(writer.close)
            return writer

        yield make


def payloads(journal: Path) -> list[bytes]:
    return [entry.payload for entry in JournalReader(journal).batch().entries]


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)


@both_syncs
async def test_an_acknowledged_record_is_in_the_file(open_writer: Open, tmp_path: Path, sync: Sync) -> None:
    writer = open_writer(sync=sync)
    for number in range(5):
        await writer.append(b"%d" % number)
        assert payloads(tmp_path)[-1] == b"%d" % number
    assert payloads(tmp_path) == [b"0", b"1", b"2", b"3", b"4"]


@both_syncs
async def test_concurrent_records_are_each_written_once_and_in_the_order_of_the_calls(
    open_writer: Open, tmp_path: Path, sync: Sync
) -> None:
    writer = open_writer(sync=sync)
    await asyncio.gather(*[writer.append(b"%d" % number) for number in range(2000)])
    assert payloads(tmp_path) == [b"%d" % number for number in range(2000)]


@both_syncs
async def test_records_of_one_iteration_of_the_loop_are_written_together(
    open_writer: Open, monkeypatch: pytest.MonkeyPatch, sync: Sync
) -> None:
    writer = open_writer(sync=sync)
    writes: list[int] = []
    write = os.write

    def counted(descriptor: int, data: bytes) -> int:
        if data.endswith(b"\n"):
            writes.append(len(data))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", counted)
    await asyncio.gather(*[writer.append(b"record") for _ in range(100)])
    assert writes == [100 * len(frame(b"record"))]


@both_syncs
async def test_a_cancelled_wait_does_not_remove_the_record(open_writer: Open, tmp_path: Path, sync: Sync) -> None:
    writer = open_writer(sync=sync)
    cancelled, stayed = writer.append(b"left"), writer.append(b"stayed")
    cancelled.cancel()
    await stayed
    assert payloads(tmp_path) == [b"left", b"stayed"]


@both_syncs
async def test_close_writes_waiting_records(open_writer: Open, tmp_path: Path, sync: Sync) -> None:
    writer = open_writer(sync=sync)
    first = writer.append(b"first")
    await asyncio.sleep(0)
    second = writer.append(b"second")
    await writer.close()
    await writer.close()
    assert first.done()
    assert second.done()
    assert payloads(tmp_path) == [b"first", b"second"]
    with pytest.raises(JournalUnwritable):
        writer.append(b"late")


async def test_a_new_segment_begins_at_the_size_limit(open_writer: Open, tmp_path: Path) -> None:
    writer = open_writer(segment_bytes=100)
    for number in range(10):
        await writer.append(b"%030d" % number)
    sizes = segments(tmp_path / str(writer.writer_id))
    assert list(sizes) == [1, 2, 3, 4, 5]
    assert all(size <= 100 for size in sizes.values())
    assert payloads(tmp_path) == [b"%030d" % number for number in range(10)]


@pytest.mark.parametrize("record", [b"two\nlines", b"x" * (MAX_RECORD_BYTES + 1)])
async def test_a_record_that_is_not_one_line_is_refused(open_writer: Open, record: bytes) -> None:
    with pytest.raises(ValueError, match="one line"):
        open_writer().append(record)


async def test_many_records_of_the_maximum_size_are_accepted_at_once(open_writer: Open, tmp_path: Path) -> None:
    writer = open_writer()
    record = b"x" * MAX_RECORD_BYTES
    await asyncio.gather(*[writer.append(record) for _ in range(6)])
    assert payloads(tmp_path) == [record] * 6


async def test_a_disk_that_is_slower_than_the_records_bounds_the_queue(open_writer: Open) -> None:
    writer = open_writer(sync="fsync")
    waiting: list[Awaitable[None]] = []
    with pytest.raises(JournalFull):
        for _ in range(10):
            waiting.append(writer.append(b"x" * MAX_RECORD_BYTES))
    assert len(waiting) >= 3
    await asyncio.gather(*waiting)
    await writer.append(b"room again")


async def test_a_nearly_full_journal_refuses_requests_and_a_full_one_refuses_records(open_writer: Open) -> None:
    writer = open_writer(max_bytes=80_000, look_every=60)
    assert not writer.half_full()
    while not writer.full():
        await writer.append(b"x" * 991)
    assert writer.half_full()
    assert 69_000 <= writer.size_bytes() <= 71_000
    for _ in range(9):
        await writer.append(b"x" * 991)  # records of admitted requests
    with pytest.raises(JournalFull) as refusal:
        for _ in range(3):
            await writer.append(b"x" * 991)
    assert (refusal.value.status, refusal.value.code) == (503, "journal_full")
    assert writer.size_bytes() <= 80_000


async def test_a_drained_journal_accepts_requests_again(open_writer: Open, tmp_path: Path) -> None:
    writer = open_writer(max_bytes=80_000, segment_bytes=10_000, look_every=0.01)
    while not writer.full():
        await writer.append(b"x" * 991)
    reader = JournalReader(tmp_path)
    reader.release(reader.batch())
    await until(lambda: writer.size_bytes() <= 10_000)
    assert not writer.full()


async def test_a_full_journal_of_idle_writers_can_be_drained(open_writer: Open, tmp_path: Path) -> None:
    writers = [open_writer(max_bytes=80_000, look_every=0.01) for _ in range(20)]
    for writer in writers:
        await asyncio.gather(*[writer.append(b"x" * 941) for _ in range(4)])
    await until(lambda: [writer.full() for writer in writers] == [True] * 20)
    reader = JournalReader(tmp_path)

    def drained() -> bool:
        reader.release(reader.batch())
        return [writer.full() for writer in writers] == [False] * 20

    await until(drained)
    await writers[0].append(b"room again")


async def test_the_limit_applies_to_all_writers_together(open_writer: Open, tmp_path: Path) -> None:
    first = open_writer(max_bytes=80_000, look_every=0.01)
    second_writer = open_writer(max_bytes=80_000, look_every=60)
    while not second_writer.full():
        await second_writer.append(b"x" * 991)
    await until(first.full)
    assert open_writer(max_bytes=80_000).full()


async def test_a_nearly_full_disk_counts_as_a_full_journal(open_writer: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    free = 1_000
    monkeypatch.setattr("gatehouse.foundation.journal.files.free_bytes", lambda _: free)
    writer = open_writer(look_every=0.01)
    assert writer.full()
    free = 1024**3
    await until(lambda: not writer.full())


NO_SPACE = """
import asyncio, resource, sys
from pathlib import Path
from gatehouse.foundation.journal import JournalUnwritable, JournalWriter

def allow(size):  # a file system that takes files of this size: a write beyond is short, the next one fails
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

async def main():
    writer = JournalWriter(Path(sys.argv[1]), sync=sys.argv[2], look_every=0.01)
    await writer.append(b"before")
    allow(15 + 2 * 109 + 50)
    waiting = [writer.append(b"%0100d" % number) for number in range(4)]
    for number, done in enumerate(await asyncio.gather(*waiting, return_exceptions=True)):
        print(number, "kept" if done is None else f"{done.code} {type(done.__cause__).__name__}")
    print("full", writer.full())
    try:
        await writer.append(b"while broken")
    except JournalUnwritable:
        print("refused")
    allow(resource.RLIM_INFINITY)
    while writer.full():
        await asyncio.sleep(0.001)
    await writer.append(b"after")
    await writer.close()

asyncio.run(main())
"""


@pytest.mark.parametrize(("sync", "kept"), [("write", 2), ("fsync", 0)])
def test_an_incomplete_write_keeps_complete_lines_and_fails_the_other_records(
    tmp_path: Path, sync: str, kept: int
) -> None:
    run = subprocess.run(
        [sys.executable, "-c", NO_SPACE, tmp_path, sync], capture_output=True, text=True, timeout=60, check=True
    )
    results = [f"{number} kept" if number < kept else f"{number} journal_unwritable OSError" for number in range(4)]
    assert run.stdout.splitlines() == [*results, "full True", "refused"]
    batch = JournalReader(tmp_path).batch()
    assert [entry.payload for entry in batch.entries] == [b"before", b"%0100d" % 0, b"%0100d" % 1, b"after"]
    assert not batch.damage


async def test_two_writers_never_share_a_directory(open_writer: Open, tmp_path: Path) -> None:
    first, second = open_writer(), open_writer()
    await first.append(b"first")
    await second.append(b"second")
    assert first.writer_id != second.writer_id
    assert segment_path(tmp_path / str(first.writer_id), 1).read_bytes() == frame(b"first")
    assert segment_path(tmp_path / str(second.writer_id), 1).read_bytes() == frame(b"second")
