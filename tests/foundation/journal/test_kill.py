"""Real processes are killed. Acknowledged records are then stored once, and torn records are not stored."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from uuid import UUID

import msgspec
import pytest

from gatehouse.foundation.journal import JournalReader, Position

APPENDER = Path(__file__).with_name("appender.py")
LANES = 20


class Appender:
    def __init__(self, journal: Path, output: Path, sync: str, segment_bytes: int) -> None:
        self._output = output
        with output.open("wb") as stdout:
            command: list[str | Path] = [sys.executable, APPENDER, journal, sync, str(LANES), str(segment_bytes)]
            self.process = subprocess.Popen(command, stdout=stdout)

    def lines(self) -> list[str]:
        return self._output.read_text().split("\n")[:-1]  # the last line may be incomplete

    def writer_id(self) -> UUID:
        while not (lines := self.lines()):
            assert self.process.poll() is None
            time.sleep(0.002)
        return UUID(lines[0])

    def kill(self) -> set[tuple[UUID, str]]:
        """Kills the process and returns the records that it had acknowledged."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        writer_id, *records = self.lines()
        return {(UUID(writer_id), record) for record in records}


class Keeper:
    """Stores rows and positions in one step, as a transaction does. Sometimes it fails before this step, or ends after
    it."""

    def __init__(self, journal: Path, chance: random.Random) -> None:
        self._journal = journal
        self._chance = chance
        self._reader = JournalReader(journal)
        self._positions: dict[UUID, Position] = {}
        self.rows: list[tuple[UUID, str]] = []

    def drain(self) -> bool:
        batch = self._reader.batch(max_records=5_000)
        if self._chance.random() < 0.2:
            return True
        assert all(damage.torn for damage in batch.damage)
        self.rows += [(entry.writer_id, msgspec.json.decode(entry.payload)["record"]) for entry in batch.entries]
        self._positions |= batch.positions
        if self._chance.random() < 0.2:
            self._reader = JournalReader(self._journal)
            self._reader.resume(self._positions)
            return True
        for writer_id in self._reader.release(batch):
            self._positions.pop(writer_id, None)  # no position if killed before the first record
        return bool(batch)


@pytest.mark.parametrize(("sync", "rounds"), [("write", 4), ("fsync", 2)])
def test_every_acknowledged_record_of_a_killed_writer_is_stored_once(tmp_path: Path, sync: str, rounds: int) -> None:
    chance = random.Random(7)
    journal = tmp_path / "journal"
    keeper = Keeper(journal, chance)
    acknowledged: set[tuple[UUID, str]] = set()
    for number in range(rounds):
        appenders = [Appender(journal, tmp_path / f"told-{number}-{item}", sync, 50_000) for item in range(4)]
        for appender in appenders:
            appender.writer_id()
            time.sleep(chance.random() * 0.01)
            acknowledged |= appender.kill()
            keeper.drain()  # while other writers still write
    while keeper.drain():
        pass
    assert len(acknowledged) > 100
    assert acknowledged <= set(keeper.rows)
    assert Counter(keeper.rows).most_common(1)[0][1] == 1
    # For each kill, one record per lane may have been written but not yet acknowledged.
    assert len(keeper.rows) - len(acknowledged) <= rounds * 4 * LANES
    assert not list(journal.iterdir())


def test_a_living_writer_is_never_finished(tmp_path: Path) -> None:
    appender = Appender(tmp_path / "journal", tmp_path / "told", "write", 1_000_000)
    reader = JournalReader(tmp_path / "journal")
    try:
        writer_id = appender.writer_id()
        for _ in range(20):
            batch = reader.batch()
            assert batch.finished == []
            reader.release(batch)
        appender.process.send_signal(signal.SIGSTOP)
        assert [entry.alive for entry in reader.backlog()] == [True]
    finally:
        appender.kill()
    while not (batch := reader.batch(max_records=100_000)).finished:
        reader.release(batch)
    assert batch.finished == [writer_id]
