"""Records in an outpost's files: their sequence numbers, the audit log, and its export."""

import itertools
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import msgspec
import pytest
from tests.support.journal import opened, outcome
from tests.support.outpost_files import RICH, TENANT, TOOL_CALL, OutpostFiles, read, requests

from gatehouse.engine.records.outcome import encode
from gatehouse.outpost.records.export import Export
from gatehouse.outpost.records.log import (
    Cursor,
    NotALine,
    entry,
    line,
    place,
)
from gatehouse.outpost.records.positions import UnknownPlace


@pytest.fixture
def outpost(tmp_path: Path) -> Iterator[OutpostFiles]:
    files = OutpostFiles(tmp_path)
    yield files
    files.records.close()


@pytest.mark.parametrize(
    "text",
    [
        encode(RICH),
        encode(opened(RICH)),
        encode(TOOL_CALL),
        encode(outcome(TENANT, timestamp=1770000000.25)),
        b'["lost","damaged",null,12]',
        b'["lost","damaged",null,12,1770000000.5]',
        b'["ended"]',
        b'["ended",1770000000.5]',
        b'["operated","0197a1f4-3c1e-7e4b-9d59-0a4a4e5f6a7b",1770000000.5,"kill_switch","10.0.0.5",null,{"active":true}]',
    ],
    ids=["rich", "opened", "tool call", "plain", "old lost", "lost", "old ended", "ended", "operated"],
)
def test_a_line_of_the_audit_log_has_named_fields_and_can_be_converted_to_its_entry(text: bytes) -> None:
    at = Cursor(uuid4(), 1234567)
    text_line = line(at, text, handed_in=True)
    assert msgspec.json.decode(entry(text_line)) == msgspec.json.decode(text)
    assert place(text_line) == at
    assert text_line.count(b"\n") == 1
    assert b"\r" not in text_line


def test_a_line_can_be_read_by_a_person() -> None:
    body = json.loads(line(Cursor(uuid4(), 1), encode(RICH), handed_in=False))
    assert body.items() >= {
        "sequence": 1, "handed_in": False, "timestamp": "2026-02-02T02:40:00.123457Z", "type": "outcome",
        "actor_type": "user", "provider": "sandbox", "outcome": "success", "status": 200, "cost_usd": "0.000013",
    }.items()  # fmt: skip
    assert body["budgets"] == [{"id": str(RICH.budgets[0][0]), "period_start": "2026-02-02T02:40:00Z"}]
    assert body["dlp_events"][0]["entity_type"] == "email"
    assert body["attempts"] == [
        {
            "provider": "one",
            "model_id": "m",
            "status": 503,
            "reason": "server_error",
            "duration_ms": None,
            "credential": None,
        }
    ]


@pytest.mark.parametrize("microseconds", [0, 1, 499_999, 999_999])
def test_a_record_has_the_same_time_whether_it_comes_from_the_journal_or_from_the_audit_log(microseconds: int) -> None:
    for timestamp in (1770000000 + microseconds / 1_000_000, 1770000000.9999998, 1795459617.6931121):
        text = line(Cursor(uuid4(), 1), encode(outcome(TENANT, timestamp=timestamp)), handed_in=True)
        moments = [datetime.fromtimestamp(seconds, UTC) for seconds in (timestamp, msgspec.json.decode(entry(text))[3])]
        assert moments[0] == moments[1] == datetime.fromisoformat(json.loads(text)["timestamp"])


def test_an_export_shows_lines_of_an_earlier_version_in_the_current_form(outpost: OutpostFiles) -> None:
    journal = "0197a1f4-3c1e-7e4b-9d59-0a4a4e5f6a7b"
    current_line = json.loads(line(Cursor(UUID(journal), 1), encode(RICH), handed_in=True))
    earlier = {
        **current_line, "timestamp": RICH.timestamp, "budgets": [[str(RICH.budgets[0][0]), RICH.budgets[0][1]]]
    }  # fmt: skip
    head = {name: earlier.pop(name) for name in ("journal_id", "sequence", "handed_in")}
    lines = [
        {**head, "time": current_line["timestamp"], **earlier},
        {**head, "sequence": 2, "type": "ended"},
    ]
    (outpost.folder / "audit").mkdir()
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (outpost.folder / "audit" / "00000001.jsonl").write_text(text)
    ended = {"journal_id": journal, "sequence": 2, "handed_in": True, "timestamp": None, "type": "ended"}
    assert outpost.exported() == [current_line, ended]


def test_every_line_of_an_export_has_its_time(outpost: OutpostFiles) -> None:
    before = datetime.now(UTC)
    outpost.answer(2)
    lines = outpost.exported()
    assert [line["type"] for line in lines] == ["outcome", "outcome", "ended"]
    ended = datetime.fromisoformat(str(lines[-1]["timestamp"]))
    # A file system's clock may be some milliseconds late.
    assert before - timedelta(seconds=1) <= ended <= datetime.now(UTC) + timedelta(seconds=1)
    outpost.hand_in()
    assert [record["timestamp"] for record in outpost.exported()] == [line["timestamp"] for line in lines]


@pytest.mark.parametrize("text", [b"", b"{}\n", b'{"journal_id":"x"}\n', b"[" * 300, b'{"journal_id":"' + b"0" * 60])
def test_a_text_that_is_not_a_line_is_refused(text: bytes) -> None:
    with pytest.raises(NotALine):
        place(text)
    with pytest.raises(NotALine):
        entry(text)


def test_writers_are_read_one_after_the_other_to_their_end(outpost: OutpostFiles) -> None:
    first, second = outpost.answer(5), outpost.answer(3)
    batches = [outpost.records.take(2_000)]
    assert batches[0] is not None
    assert len(batches[0].entries) == 6
    assert batches[0].entries[-1].startswith(b'["ended",')
    assert outpost.hand_in() == 6
    assert outpost.hand_in(3) == 3
    assert outpost.hand_in() == 1
    assert outpost.hand_in() == 0
    assert list((outpost.folder / "journal").glob("*-*")) == []
    assert requests(outpost.exported()) == [*first, *second]


def test_an_unused_process_writes_no_records(outpost: OutpostFiles) -> None:
    outpost.answer(0)
    batch = outpost.records.take()
    assert batch is not None
    assert (batch.entries, batch.finished) == ([], True)
    outpost.records.mark_uploaded(batch)
    assert outpost.exported() == []


@pytest.mark.parametrize("kill", ["before the note", "in the midst of a line", "before the release"])
def test_a_kill_while_records_move_duplicates_no_line(
    outpost: OutpostFiles, kill: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = outpost.answer(9)
    assert outpost.hand_in(4) == 4
    note = (outpost.folder / "uploaded.json").read_bytes()
    batch = outpost.records.take(3)
    assert batch is not None
    if kill == "before the release":
        monkeypatch.setattr(outpost.records._reader, "release", lambda _: [])
        outpost.records.mark_uploaded(batch)
    else:
        outpost.audit.append(batch.begin, batch.entries)
        assert (outpost.folder / "uploaded.json").read_bytes() == note
    if kill == "in the midst of a line":
        (newest,) = list((outpost.folder / "audit").iterdir())
        newest.write_bytes(newest.read_bytes()[:-100])
    after = outpost.again()
    assert requests(after.exported()) == ids
    while after.hand_in(2):
        pass
    assert requests(after.exported()) == ids
    assert [record["sequence"] for record in after.exported()] == list(range(1, 11))
    after.records.close()


def test_damage_is_a_separate_entry(outpost: OutpostFiles) -> None:
    ids = outpost.answer(5)
    (segment,) = (outpost.folder / "journal").glob("*/*.log")
    content = bytearray(segment.read_bytes())
    content[content.index(ids[2].encode())] = 0
    segment.write_bytes(content)
    assert [outpost.hand_in(2), outpost.hand_in(2), outpost.hand_in(2)] == [2, 2, 2]
    kinds = [record["type"] for record in outpost.exported()]
    assert kinds == ["outcome", "outcome", "lost", "outcome", "outcome", "ended"]


def test_files_are_rotated_and_the_oldest_are_deleted(tmp_path: Path) -> None:
    outpost = OutpostFiles(tmp_path, max_bytes=4_000, max_files=3)
    ids = outpost.answer(40)
    while outpost.hand_in(7):
        pass
    sizes = outpost.audit.files()
    assert len(sizes) == 3
    assert max(sizes.values()) <= 4_000
    remaining = requests(outpost.exported())
    assert remaining == ids[-len(remaining) :]
    outpost.records.close()


def test_an_export_contains_each_record_once_while_records_move(outpost: OutpostFiles) -> None:
    ids = outpost.answer(700) + outpost.answer(700)
    for most in (1, 90, 450):
        export, parts = Export(outpost.records), []
        for turn in itertools.count():
            if turn % 2:
                outpost.hand_in(most)
            part = export.part()
            if part is None:
                break
            parts.append(part)
        assert requests(read(iter(parts))) == ids


def test_an_export_may_begin_after_a_position_and_omit_uploaded_records(outpost: OutpostFiles) -> None:
    first, second = outpost.answer(6), outpost.answer(6)
    outpost.hand_in(4)
    records = outpost.exported()
    assert [item["handed_in"] for item in records] == [True] * 4 + [False] * 10
    assert requests(outpost.exported(unsent=True)) == [*first[4:], *second]
    after = Cursor(UUID(str(records[2]["journal_id"])), 3)
    assert requests(outpost.exported(after=after)) == [*first[3:], *second]
    assert outpost.exported(after=Cursor(UUID(str(records[-1]["journal_id"])), 7)) == []


def confirmed(outpost: OutpostFiles, number: int) -> int:
    result = outpost.exported()[number]
    return outpost.records.confirm(Cursor(UUID(str(result["journal_id"])), int(str(result["sequence"]))))


def test_confirmed_records_move_from_the_journal_to_the_audit_log(outpost: OutpostFiles) -> None:
    first, second = outpost.answer(6), outpost.answer(6)
    assert confirmed(outpost, 2) == 3
    assert confirmed(outpost, 1) == 0
    assert requests(outpost.exported(unsent=True)) == [*first[3:], *second]
    # The position is the third entry of the second journal. The first journal has an entry about its end.
    assert confirmed(outpost, 9) == 7
    assert requests(outpost.exported(unsent=True)) == second[3:]
    assert requests(outpost.exported()) == [*first, *second]


def test_an_unknown_position_confirms_nothing(outpost: OutpostFiles) -> None:
    ids = outpost.answer(6)
    journal_id = UUID(str(outpost.exported()[0]["journal_id"]))
    for through in (Cursor(journal_id, 99), Cursor(uuid4(), 1)):
        with pytest.raises(UnknownPlace):
            outpost.records.confirm(through)
    assert requests(outpost.exported(unsent=True)) == ids


def test_records_are_uploaded_although_the_audit_log_cannot_be_written(outpost: OutpostFiles) -> None:
    outpost.answer(3)
    (outpost.folder / "audit").write_text("a file, where a folder should be")
    assert outpost.hand_in() == 4
    assert outpost.hand_in() == 0


FAULTS: dict[str, Callable[[OutpostFiles], object]] = {
    "gone": lambda outpost: (outpost.folder / "uploaded.json").unlink(),
    "unreadable": lambda outpost: (outpost.folder / "uploaded.json").write_bytes(b"{"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_journal_without_its_position_and_first_segment_continues_under_a_new_id(
    outpost: OutpostFiles, fault: str
) -> None:
    # There are enough entries to release the first segment.
    outpost.answer(400)
    assert outpost.hand_in(300) == 300
    FAULTS[fault](outpost)
    after = outpost.again()
    batch = after.records.take()
    assert batch is not None
    assert batch.journal_id != batch.writer_id
    assert batch.place.number == 1
    repeated_batch = after.records.take()
    assert repeated_batch is not None
    assert repeated_batch.journal_id == batch.journal_id
    after.records.close()
