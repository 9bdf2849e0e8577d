"""The processes that read files: they are killed or suspended, get too little memory or too many files."""

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator

import psutil
import pytest
from tests.support.documents import docx, pdf

from gatehouse.detection.documents import readers as module
from gatehouse.detection.documents.output import Reading, Unread
from gatehouse.detection.documents.readers import Readers, ReaderUnavailable

CARD = "4111 1111 1111 1111"
READ_TIMEOUT_SECONDS = 60.0


@pytest.fixture
async def readers() -> AsyncIterator[Readers]:
    readers = Readers(readers=1)
    yield readers
    await readers.stop()
    assert processes() == []


def processes() -> list[psutil.Process]:
    return [
        child for child in psutil.Process().children()
        if child.status() != psutil.STATUS_ZOMBIE and "gatehouse.detection.documents" in child.cmdline()
    ]  # fmt: skip


async def read(readers: Readers, data: bytes, seconds: float = READ_TIMEOUT_SECONDS) -> Reading:
    return await readers.read(data, declared_as_text=False, deadline=time.monotonic() + seconds)


async def test_one_process_reads_one_file_after_the_other(readers: Readers) -> None:
    for data in (pdf(CARD), docx(CARD), CARD.encode("utf-16")):
        assert CARD in (await read(readers, data)).text
    assert len(processes()) == 1


async def test_a_process_has_no_secrets_and_writes_no_files(readers: Readers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEHOUSE_MASTER_KEY", "secret")
    await read(readers, b"a")
    (process,) = processes()
    assert "GATEHOUSE_MASTER_KEY" not in process.environ()
    assert process.rlimit(psutil.RLIMIT_FSIZE) == (0, 0)
    assert process.rlimit(psutil.RLIMIT_CORE) == (0, 0)
    assert 0 < process.rlimit(psutil.RLIMIT_DATA)[1] <= 512 * 1024**2


async def test_a_process_that_is_killed_while_it_reads_leaves_the_file_unread_and_the_next_is_read(
    readers: Readers,
) -> None:
    await read(readers, b"a")
    (process,) = processes()
    process.suspend()
    reading = asyncio.create_task(read(readers, pdf(CARD)))
    await asyncio.sleep(0.1)
    process.kill()
    assert await reading == Reading("", (Unread("file", "crashed"),))
    assert CARD in (await read(readers, pdf(CARD))).text


async def test_a_process_that_was_killed_while_it_was_idle_is_replaced(readers: Readers) -> None:
    await read(readers, b"a")
    (process,) = processes()
    process.kill()
    while processes():
        await asyncio.sleep(0.01)
    # The event loop notices the end of the process.
    await asyncio.sleep(0.1)
    assert CARD in (await read(readers, pdf(CARD))).text


async def test_a_file_that_takes_too_long_is_unread_and_its_process_is_killed(readers: Readers) -> None:
    await read(readers, b"a")
    (process,) = processes()
    process.suspend()
    assert await read(readers, pdf(CARD), 0.3) == Reading("", (Unread("file", "timeout"),))
    assert processes() == []
    assert CARD in (await read(readers, pdf(CARD))).text


async def test_a_file_that_waits_too_long_is_not_marked_as_unreadable(readers: Readers) -> None:
    await read(readers, b"a")
    (process,) = processes()
    process.suspend()
    first = asyncio.create_task(read(readers, b"a", 1.0))
    await asyncio.sleep(0.05)
    with pytest.raises(ReaderUnavailable) as error:
        await read(readers, b"b", 0.2)
    assert error.value.reason == "timeout"
    await first


async def test_the_bytes_of_waiting_files_are_limited(readers: Readers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING_BYTES", 100)
    first = asyncio.create_task(read(readers, b"a" * 90))
    await asyncio.sleep(0)
    with pytest.raises(ReaderUnavailable) as error:
        await read(readers, b"b" * 20)
    assert error.value.reason == "overloaded"
    assert (await first).text == "a" * 90
    # A single file is read, whatever its size.
    assert (await read(readers, b"c" * 200)).text == "c" * 200


async def test_a_cancelled_reading_leaves_no_process(readers: Readers) -> None:
    await read(readers, b"a")
    (process,) = processes()
    process.suspend()
    reading = asyncio.create_task(read(readers, b"a"))
    await asyncio.sleep(0.05)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert processes() == []
    assert (await read(readers, b"b")).text == "b"


async def test_a_file_that_uses_up_the_memory_is_unread(readers: Readers) -> None:
    """The page has less than a megabyte, and 400 when unpacked."""
    reading = await read(readers, pdf("x" * 1000, repeated=400_000))
    assert reading.text == ""
    assert [item.reason for item in reading.unread] in (["crashed"], ["too_large"])
    assert CARD in (await read(readers, pdf(CARD))).text


async def test_processes_end_with_the_one_that_started_them() -> None:
    code = (
        "import asyncio, time, os\nfrom gatehouse.detection.documents.readers import Readers\n"
        "async def main():\n    held = Readers()\n"
        "    await held.read(b'a', declared_as_text=False, deadline=time.monotonic() + 60)\n"
        "    print(held._idle[0].process.pid, flush=True)\n    await asyncio.sleep(60)\nasyncio.run(main())"
    )
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    assert parent.stdout is not None
    child = int(await parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    await parent.wait()
    for _ in range(200):
        if not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE:
            return
        await asyncio.sleep(0.05)
    pytest.fail("it is still there")
