"""Which data an outpost drops on a full disk, and in which order."""

import asyncio
from pathlib import Path

import httpx2
import msgspec
import pytest
from tests.support.outpost_files import RICH, TOOL_CALL, OutpostFiles, requests
from tests.support.outpost_server import OutpostServer, Trust, until

from gatehouse.engine.records.outcome import Outcome, decode, encode
from gatehouse.foundation.journal import JournalReader, JournalWriter
from gatehouse.outpost.records.disk import (
    DiskMonitor,
    DiskUsage,
    Shed,
    ThinningJournal,
    used_percent,
)


class Disk:
    """A file system with a prescribed use in percent. Each audit file takes one percent."""

    def __init__(self, outpost: OutpostFiles, percent: float) -> None:
        self.percent = percent
        self._audit = outpost.audit
        self._files = len(self._audit.files())

    def used(self, _: Path) -> float:
        return self.percent - (self._files - len(self._audit.files()))


@pytest.fixture
def outpost(tmp_path: Path) -> OutpostFiles:
    """Returns the records of an outpost with five files of its audit log."""
    files = OutpostFiles(tmp_path, max_bytes=5_000)
    files.answer(25)
    while files.hand_in(5):
        pass
    assert len(files.audit.files()) == 5
    return files


def monitored(outpost: OutpostFiles, disk: Disk) -> DiskMonitor:
    return DiskMonitor(outpost.folder, outpost.records, threshold=80, interval=1, used=disk.used)


@pytest.mark.parametrize(
    ("percent", "shed", "files"),
    [
        (79.9, "nothing", 5),
        (80, "audit_files", 4),
        (82, "audit_files", 2),
        (84.9, "audit_files", 0),
        (85, "audit_lines", 0),
        (94.9, "audit_lines", 0),
        (95, "journal_detail", 0),
        (100, "journal_detail", 0),
    ],
)
def test_audit_data_is_dropped_step_by_step(outpost: OutpostFiles, percent: float, shed: Shed, files: int) -> None:
    monitor = monitored(outpost, Disk(outpost, percent))
    monitor.look()
    assert (monitor.status.shed, len(outpost.audit.files())) == (shed, files)
    assert monitor.status.files_removed == 5 - files


def test_the_oldest_files_are_removed_first(outpost: OutpostFiles) -> None:
    before = requests(outpost.exported())
    monitored(outpost, Disk(outpost, 81.5)).look()
    remaining = requests(outpost.exported())
    assert 0 < len(remaining) < len(before)
    assert remaining == before[-len(remaining) :]


def test_lines_are_written_again_when_the_disk_has_room(outpost: OutpostFiles) -> None:
    disk = Disk(outpost, 90)
    monitor = monitored(outpost, disk)
    monitor.look()
    without = outpost.answer(3)
    assert outpost.hand_in() == 4
    assert outpost.exported() == []
    # A use just below the threshold is too high, because the next file would exceed the threshold again.
    disk.percent = 84.5
    monitor.look()
    assert monitor.status.shed == "audit_lines"
    disk.percent = 70
    monitor.look()
    assert monitor.status.shed == "nothing"
    answered = outpost.answer(3)
    outpost.hand_in()
    assert requests(outpost.exported()) == answered
    assert without != answered


@pytest.mark.parametrize("shed", ["nothing", "audit_files", "audit_lines", "journal_detail"])
async def test_only_the_last_step_removes_detail_from_records(tmp_path: Path, shed: Shed) -> None:
    status = DiskUsage(shed=shed)
    writer = JournalWriter(tmp_path)
    journal = ThinningJournal(writer, status)
    await asyncio.gather(
        journal.append(encode(RICH)), journal.append(encode(msgspec.structs.replace(RICH, stream=True)))
    )
    await writer.close()
    for entry in JournalReader(tmp_path).batch().entries:
        read = decode(entry.payload)
        assert isinstance(read, Outcome)
        thin = shed == "journal_detail"
        assert (read.dlp_events, read.rule_events, read.attempts) == (
            ((), (), ()) if thin else (RICH.dlp_events, RICH.rule_events, RICH.attempts)
        )
        # Fields for counts and costs are not removed.
        for name in ("id", "request_id", "cost_usd", "input_tokens", "budgets", "group_ids", "dlp_action", "timestamp"):
            assert getattr(read, name) == getattr(RICH, name)
    assert status.entries_thinned == (2 if shed == "journal_detail" else 0)


async def test_the_last_step_removes_detail_from_calls_of_tools(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path)
    await ThinningJournal(writer, DiskUsage(shed="journal_detail")).append(encode(TOOL_CALL))
    await writer.close()
    (entry,) = JournalReader(tmp_path).batch().entries
    assert decode(entry.payload) == msgspec.structs.replace(TOOL_CALL, dlp_events=(), rule_events=())


def test_an_unreadable_disk_is_reported(tmp_path: Path) -> None:
    assert 0 < used_percent(tmp_path) < 100
    with pytest.raises(OSError, match="No such file"):
        used_percent(tmp_path / "nothing")


def test_an_outpost_on_a_full_disk_serves_and_reports_dropped_data(trust: Trust) -> None:
    """The threshold is one percent, which every disk exceeds."""
    with OutpostServer(trust, DISK_MONITOR_THRESHOLD="1", DISK_MONITOR_CHECK_INTERVAL="0.1") as outpost:
        with outpost.admin() as operator:
            disk = until(lambda: operator.get("/admin/api/status").json()["disk"])
            assert disk["shed"] in {"audit_lines", "journal_detail"}
            assert disk["used_percent"] >= disk["threshold_percent"] == 1
            assert outpost.ask().status_code == 200
            until(lambda: operator.get("/admin/api/status").json()["journal"]["handed_in"] == 1)
            assert operator.get("/admin/audit/export").text == ""
        figures = httpx2.get(outpost.url + "/metrics").text
        assert any(f"\nservice_outpost_disk_shed {step}.0" in figures for step in (2, 3))
        assert "outpost.disk_shed" in outpost.log
