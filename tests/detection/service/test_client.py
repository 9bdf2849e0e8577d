"""The client with the real process, which is killed or suspended, gets too little memory or too many requests."""

import asyncio
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import uvloop
from tests.support.detection import DetectionProcess, detecting, reached, stopped
from tests.support.documents import pdf

from gatehouse.detection.documents.output import Unread
from gatehouse.detection.findings import Finding
from gatehouse.detection.models import TierFailed
from gatehouse.detection.service import client as clients
from gatehouse.detection.service.client import DetectionClient
from gatehouse.detection.service.guard import OUT_OF_MEMORY

ANNA = [Finding(0, 4, "person", 1.0, "person")]


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gh") as directory:
        yield Path(directory)


async def failure(call: Awaitable[Any]) -> str:
    with pytest.raises(TierFailed) as failed:
        await call
    return str(failed.value)


async def test_both_tiers_answer_for_each_text(home: Path) -> None:
    async with detecting(home) as (_, client):
        assert await client.entities(["Anna met Bob", "nobody", ""]) == [
            [*ANNA, Finding(9, 12, "person", 1.0, "person")], [], [],
        ]  # fmt: skip
        assert await client.semantic(["a", "b"], ["x", "y"]) == [{"x": 0.001, "y": 0.001}] * 2
        assert await client.entities([]) == []


async def test_labels_reach_the_model_of_the_entities_tier(home: Path) -> None:
    async with detecting(home) as (_, client):
        assert await client.entities(["Anna"], ("drug_name",)) == [
            [*ANNA, Finding(0, 0, "drug_name", 1.0, "drug_name")]
        ]
        # Answers are cached by their labels.
        assert await client.entities(["Anna"]) == [ANNA]


async def test_documents_are_read_by_processes_of_its_own(home: Path) -> None:
    async with detecting(home) as (process, client):
        reading = await client.document(pdf("card 4111"), declared_as_text=False, seconds=60)
        assert "card 4111" in reading.text
        (reader,) = psutil.Process(process.process.pid).children() if process.process else []
        assert "gatehouse.detection.documents" in reader.cmdline()
        # Reading a document does not need the models.
        assert (await client.health())["ner"].detail != "loaded"
        reader.suspend()
        stuck = await client.document(b"a", declared_as_text=False, seconds=0.3)
        assert stuck.unread == (Unread("file", "timeout"),)
        assert (await client.entities(["Anna"])) == [ANNA]
        large = await client.document(("word " * 300_000).encode("utf-16"), declared_as_text=True, seconds=60)
        assert len(large.text) == 5 * 300_000 + 1


async def test_a_document_is_not_read_where_the_process_is_stopped_or_gone(home: Path) -> None:
    async with detecting(home) as (process, client):
        with stopped(process):
            assert await failure(client.document(b"a", declared_as_text=False, seconds=0.2)) == "documents: timeout"
        asking = asyncio.create_task(failure(client.document(b"a", declared_as_text=False, seconds=5)))
        await asyncio.sleep(0)
        process.signal(signal.SIGKILL)
        await process.ended()
        assert "documents" in await asking


async def test_positions_are_those_of_the_callers_text(home: Path) -> None:
    async with detecting(home) as (_, client):
        for text in ("\U0001f600 Anna", "\ud83d Anna", "ç\u0301 Anna"):
            (entity,) = await client.entities([text])
            assert [text[one.start : one.end] for one in entity] == ["Anna"]


async def test_only_the_owner_can_reach_the_socket(home: Path) -> None:
    async with detecting(home):
        assert stat.S_IMODE((home / "detection.sock").stat().st_mode) == 0o600


async def test_a_home_with_a_long_name_has_a_socket_too(home: Path) -> None:
    deep = home / ("long" * 30)
    deep.mkdir()
    async with detecting(deep) as (_, client):
        assert await client.entities(["Anna"]) == [ANNA]


async def test_a_text_is_read_once_for_the_same_labels(home: Path) -> None:
    async with detecting(home) as (_, client):
        first = await client.semantic(["a", "a"], ["x"])
        assert await client.semantic(["b", "a"], ["x"]) == [{"x": 0.002}, first[0]]
        assert await client.semantic(["a"], ["x", "y"]) == [{"x": 0.003, "y": 0.003}]
        assert await client.entities(["Anna"]) == await client.entities(["Anna"]) == [ANNA]


async def test_a_repeated_request_continues_after_a_timeout(home: Path) -> None:
    async with detecting(home, budget=0.5) as (_, client):
        texts = [f"sleep 0.01 {number}" for number in range(100)]
        failures: list[str] = []
        results: list[list[Finding]] = []
        while not results and len(failures) < 9:
            try:
                results = await client.entities(texts)
            except TierFailed as failed:
                failures.append(failed.reason)
        assert results == [[]] * 100
        assert set(failures) == {"timeout"}


async def test_changing_an_answer_does_not_affect_other_callers(home: Path) -> None:
    async with detecting(home) as (_, client):
        (result,), (scores,) = await client.entities(["Anna"]), await client.semantic(["a"], ["x"])
        result.clear()
        scores.clear()
        assert (await client.entities(["Anna"]), await client.semantic(["a"], ["x"])) == ([ANNA], [{"x": 0.001}])


async def test_a_killed_process_fails_requests_in_progress_and_is_replaced(home: Path) -> None:
    async with detecting(home) as (process, client):
        assert await client.entities(["Anna"]) == [ANNA]
        in_flight = asyncio.create_task(failure(client.entities(["sleep 4"])))
        waiting = asyncio.create_task(failure(client.entities(["Bob"])))
        await asyncio.sleep(0.2)
        process.signal(signal.SIGKILL)
        assert [await in_flight, await waiting] == ["ner: crashed"] * 2
        assert (await client.health())["ner"].status == "degraded"
        process.start()
        # A request during the start waits for it.
        assert await client.entities(["Anna", "Carl"]) == [ANNA, ANNA]
        assert (await client.health())["ner"].status == "healthy"


def test_a_connection_lost_before_the_reader_notices_fails_the_request_and_is_replaced(home: Path) -> None:
    """This test uses uvloop, like the product: its transports raise RuntimeError after the loss of the connection."""

    async def scenario() -> None:
        async with detecting(home) as (_, client):
            assert await client.entities(["Anna"]) == [ANNA]
            writer = client._writer
            assert writer is not None
            writer.transport.abort()
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError):
                writer.write(b"x")
            assert client._writer is writer
            assert await failure(client.entities(["Bob"])) == "ner: crashed"
            await asyncio.sleep(0.01)  # the reader notices
            assert await client.entities(["Anna", "Carl"]) == [ANNA, ANNA]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())


async def test_a_restarted_process_loads_the_models_in_use_at_once(home: Path) -> None:
    async with detecting(home) as (process, client):
        await client.entities(["Anna"])
        process.signal(signal.SIGKILL)
        await process.ended()
        process.start()
        await reached(client)
        async with asyncio.timeout(60):
            while (await client.health())["ner"].detail != "loaded":
                await asyncio.sleep(0.01)
        assert (await client.health())["llm"].detail == "idle"


async def test_answers_of_an_earlier_process_are_not_reused(home: Path) -> None:
    """The earlier process may have had other models."""
    async with detecting(home) as (process, client):
        assert await client.semantic(["a"], ["x"]) == [{"x": 0.001}]
        await client.semantic(["b"], ["x"])
        process.signal(signal.SIGKILL)
        await process.ended()
        process.start()
        await reached(client)
        assert await client.semantic(["b"], ["x"]) == [{"x": 0.001}]


async def test_a_stopped_process_delays_calls_by_at_most_the_timeout(home: Path) -> None:
    async with detecting(home, budget=0.3) as (process, client):
        await client.entities(["Anna"])
        with stopped(process):
            began = time.monotonic()
            assert await failure(client.entities(["Bob"])) == "ner: timeout"
            assert 0.25 < time.monotonic() - began < 3
            llm = (await client.health())["llm"]
            assert (llm.status, llm.detail) == ("degraded", "does not answer")
        assert await client.entities(["Carl"]) == [ANNA]


async def test_a_suspended_process_does_not_fill_the_clients_memory(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "_MAX_UNSENT_BYTES", 1024)
    async with detecting(home, budget=0.2) as (process, client):
        with stopped(process):
            results = [await failure(client.entities(["x" * 2**20 + str(number)])) for number in range(3)]
        assert results[0] == "ner: timeout"
        assert results[-1] == "ner: overloaded"


async def test_the_budget_covers_the_time_in_the_queue(home: Path) -> None:
    async with detecting(home, budget=0.3) as (_, client):
        began = time.monotonic()
        slow = asyncio.create_task(failure(client.entities(["sleep 5"])))
        await asyncio.sleep(0.05)
        assert await failure(client.entities(["Anna"])) == "ner: timeout"
        assert await slow == "ner: timeout"
        assert time.monotonic() - began < 4
        # The other tier has its own thread.
        assert await client.semantic(["a"], ["x"]) == [{"x": 0.001}]


@pytest.mark.parametrize("text", ["sleep 60", "spin"])
async def test_a_batch_that_does_not_end_ends_the_process(home: Path, text: str) -> None:
    """`spin` keeps the interpreter's lock, so no other Python code can run at the same time."""
    async with detecting(home, budget=10, DLP_TIER_TIMEOUT_MS="1") as (process, client):
        began = time.monotonic()
        assert await failure(client.entities([text])) == "ner: crashed"
        assert 1.4 < time.monotonic() - began < 30
        assert await process.ended() == 1
        assert "in _obey" in process.log()
        process.start()
        await reached(client)
        assert await client.entities(["Anna"]) == [ANNA]


async def test_consecutive_batches_do_not_count_as_a_hung_one(home: Path) -> None:
    async with detecting(home) as (process, client):
        for number in range(4):
            await client.entities([f"sleep 0.5 {number}"])
        assert process.process is not None
        assert process.process.poll() is None


async def test_used_up_memory_ends_the_process_only(home: Path) -> None:
    async with detecting(home, DETECTION_MEMORY_BYTES=str(2**28)) as (process, client):
        assert await failure(client.entities(["exhaust"])) == "ner: crashed"
        assert await process.ended() == OUT_OF_MEMORY
        assert "detection.out_of_memory" in process.log()
        process.start()
        assert await client.entities(["Anna"]) == [ANNA]


async def test_the_machine_takes_memory_from_this_process_first(home: Path) -> None:
    async with detecting(home) as (process, _):
        assert process.process is not None
        assert Path(f"/proc/{process.process.pid}/oom_score_adj").read_text().strip() == "800"


async def test_one_client_cannot_exceed_the_queue(home: Path) -> None:
    async with detecting(home, queue=3) as (_, client):
        slow = asyncio.create_task(client.entities(["sleep 0.3", "a"]))
        await asyncio.sleep(0.1)
        assert client.waiting("ner") == 2
        assert await failure(client.entities(["b", "c"])) == "ner: overloaded"
        assert await slow == [[], []]
        assert client.waiting("ner") == 0


async def test_all_clients_together_cannot_exceed_the_queue(home: Path) -> None:
    async with detecting(home, queue=3) as (_, client):
        other = DetectionClient(home, budget=5, queue=1000)
        await other.start()
        other.want()
        await reached(other)
        slow = asyncio.create_task(client.semantic(["sleep 0.3", "a"], ["x"]))
        await asyncio.sleep(0.1)
        assert (await other.health())["llm"].waiting == 2
        assert await failure(other.semantic(["b", "c"], ["x"])) == "llm: overloaded"
        await slow
        await other.stop()


async def test_a_process_is_requested_once_by_the_first_user(home: Path) -> None:
    begun: list[str] = []
    client = DetectionClient(home, budget=0.05, queue=10, begin=lambda: begun.append("now"))
    await client.start()
    try:
        health = (await client.health())["ner"]
        assert (health.status, health.detail, begun) == ("healthy", "idle", [])
        client.need("ner")
        client.need("llm")
        assert await failure(client.entities(["Anna"])) == "ner: timeout"
        assert (begun, (await client.health())["llm"].detail) == (["now"], "not running")
    finally:
        await client.stop()


async def test_a_process_needed_by_another_worker_is_reported_as_not_running(home: Path) -> None:
    needed: list[str] = []
    client = DetectionClient(home, budget=0.05, queue=10, begun=lambda: bool(needed))
    await client.start()
    try:
        assert (await client.health())["ner"].detail == "idle"
        needed.append("by another worker")
        assert (await client.health())["ner"].detail == "not running"
    finally:
        await client.stop()


async def test_a_process_that_was_never_there_is_unknown_and_unavailable(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "_RESTART_SECONDS", 0.2)
    failures: list[str] = []
    client = DetectionClient(home, budget=0.1, queue=10, on_failure=lambda failed: failures.append(str(failed)))
    await client.start()
    try:
        client.want()
        assert (await client.health())["ner"].status == "unknown"
        assert await failure(client.entities(["Anna"])) == "ner: timeout"
        await asyncio.sleep(0.2)
        assert await failure(client.entities(["Anna"])) == "ner: unavailable"
        assert failures == ["ner: timeout", "ner: unavailable"]
        health = await client.health()
        assert (health["ner"].status, health["ner"].detail) == ("degraded", "the last request failed: unavailable")
        assert health["llm"].status == "unknown"
    finally:
        await client.stop()


async def test_a_model_that_cannot_be_loaded_is_unavailable_with_the_reason(home: Path) -> None:
    async with detecting(home, "broken") as (process, client):
        assert await failure(client.entities(["Anna"])) == "ner: unavailable"
        health = await client.health()
        assert (health["ner"].status, health["llm"].status) == ("degraded", "healthy")
        assert (health["ner"].detail, health["ner"].cause) == (
            "the model cannot be loaded", "ValueError: no such model",
        )  # fmt: skip
        assert "detection.model_unusable" in process.log()


async def test_a_malformed_message_ends_only_its_connection(home: Path) -> None:
    async with detecting(home) as (process, client):
        reader, writer = await asyncio.open_unix_connection(home / "detection.sock")
        writer.write((5).to_bytes(4, "little") + b"Anna\xff")
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
        assert await client.entities(["Anna"]) == [ANNA]
        assert "Anna" not in process.log()


async def test_a_cancelled_request_leaves_nothing_behind(home: Path) -> None:
    async with detecting(home) as (_, client):
        call = asyncio.create_task(client.entities(["sleep 0.2"]))
        await asyncio.sleep(0.1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert client.waiting("ner") == 0
        assert await client.entities(["Anna"]) == [ANNA]
        assert (await client.health())["ner"].status == "healthy"


async def test_the_process_ends_with_its_parent(home: Path) -> None:
    """This also applies if the process is suspended at that time."""
    code = "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-m', 'gatehouse.detection.service']);"
    code += "print(p.pid, flush=True); time.sleep(60)"
    process = DetectionProcess(home)
    parent = subprocess.Popen([sys.executable, "-P", "-c", code], env=process.env, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    while not (home / "detection.sock").exists():
        await asyncio.sleep(0.02)
    child.suspend()
    parent.kill()
    parent.wait()
    # The child's new parent may not wait for it, so the child may remain as a zombie.
    for _ in range(100):
        if not child.is_running() or child.status() == psutil.STATUS_ZOMBIE:
            break
        await asyncio.sleep(0.05)
    else:
        child.kill()
        pytest.fail("it lives on")


async def test_texts_of_disconnected_requests_are_not_read(home: Path) -> None:
    async with detecting(home, budget=60) as (_, client):
        asking = asyncio.create_task(client.semantic([f"sleep 0.05 {number}" for number in range(200)], ["x"]))
        while not (await client.health())["llm"].waiting:
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        while (await client.health())["llm"].waiting:
            await asyncio.sleep(0.01)
        # The score is the number of the model's calls in thousandths. All texts would have needed thirteen calls.
        assert (await client.semantic(["a"], ["x"]))[0]["x"] <= 0.006


async def test_the_reading_of_a_cancelled_file_ends(home: Path) -> None:
    async with detecting(home) as (process, client):
        await client.document(pdf("card 4111"), declared_as_text=False, seconds=60)
        (reader,) = psutil.Process(process.process.pid).children() if process.process else []
        reader.suspend()
        asking = asyncio.create_task(client.document(b"a", declared_as_text=False, seconds=60))
        # Wait until the process has passed the file to a reader.
        for _ in range(50):
            await client.health()
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        async with asyncio.timeout(60):
            while reader.is_running():
                await asyncio.sleep(0.01)
