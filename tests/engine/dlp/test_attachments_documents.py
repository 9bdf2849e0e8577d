"""Files in requests, through the whole engine and the processes that read documents."""

import json
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.engine.dlp.scenarios.test_requests import ask, rule
from tests.support.detection import stand_ins
from tests.support.documents import PNG, docx, pdf, pptx, xlsx
from tests.support.engine import EngineHarness, completion
from tests.support.in_process_detectors import InProcessDetectors

from gatehouse.engine.dlp import attachments
from gatehouse.engine.dlp.tiers import DlpOptions
from gatehouse.policy.governance import GovernanceRecords

CHAT, MESSAGES, RESPONSES = "openai_chat", "anthropic_messages", "openai_responses"
CARD = "4111 1111 1111 1111"
LONG = "What is written here is of no interest to anybody, and longer than what is taken for a word. "
JAPANESE = f"顧客番号とカードは {CARD} です。東京都新宿区の佐藤さんの連絡先はこちらです。" * 3


@pytest.fixture(scope="module")
async def detectors() -> AsyncIterator[InProcessDetectors]:
    harness = InProcessDetectors(stand_ins(), budget=20, queue=100)
    yield harness
    await harness.stop()


def engine(detectors: Any, dialect: str = CHAT, *, action: str = "redact", **options: Any) -> EngineHarness:
    harness = EngineHarness(dlp=DlpOptions(**{"document_seconds": 60.0, **options}), detectors=detectors)
    harness.serve("one", "m", kind={MESSAGES: "anthropic", RESPONSES: "openai"}.get(dialect, "openai_compatible"))
    answer: list[Any] = [completion()]
    if dialect == MESSAGES:
        message = {"id": "x", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {}}
        answer = [json.dumps(message).encode()]
    harness.outbound.script = [(200, list(answer)) for _ in range(3)]
    harness.governance = GovernanceRecords(dlp_rules=(rule("credit_card", action),))
    return harness


def chat(data: bytes, media_type: str = "application/pdf") -> dict[str, Any]:
    url = f"data:{media_type};base64,{b64encode(data).decode()}"
    part = {"type": "file", "file": {"filename": "a", "file_data": url}}
    return {"messages": [{"role": "user", "content": [part]}]}


def messages(data: bytes, media_type: str = "application/pdf") -> dict[str, Any]:
    source = {"type": "base64", "media_type": media_type, "data": b64encode(data).decode()}
    return {"max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "document", "source": source}]}]}


def responses(data: bytes, media_type: str = "application/pdf") -> dict[str, Any]:
    url = f"data:{media_type};base64,{b64encode(data).decode()}"
    part = {"type": "input_file", "filename": "a", "file_data": url}
    return {"input": [{"role": "user", "content": [part]}]}


def bare(data: bytes, _: str = "") -> dict[str, Any]:
    """Return base64 without a declaration of its type."""
    part = {"type": "file", "file": {"file_data": b64encode(data).decode()}}
    return {"messages": [{"role": "user", "content": [part]}]}


PLACES = [(CHAT, chat), (CHAT, bare), (MESSAGES, messages)]


def events(harness: EngineHarness) -> list[tuple[str, str, int]]:
    return [(event.entity_type, event.status, event.match_count) for event in harness.outcomes[0].dlp_events]


@pytest.mark.parametrize("document", [pdf(f"card {CARD}"), docx(CARD), xlsx([], f"<c><v>{CARD}</v></c>"), pptx(CARD)])
@pytest.mark.parametrize(("dialect", "place"), [*PLACES, (RESPONSES, responses)])
async def test_a_value_in_a_document_blocks(
    detectors: InProcessDetectors, dialect: str, place: Any, document: bytes
) -> None:
    harness = engine(detectors, dialect)
    status, body = await ask(harness, place(document), dialect)
    assert status == 403
    assert "it is in a document, where it cannot be redacted" in json.dumps(body)
    assert harness.outbound.sent == []
    assert events(harness) == [("credit_card", "blocked", 1)]


@pytest.mark.parametrize("document", [pdf(LONG), docx(LONG), xlsx([], f"<c><v>{LONG}</v></c>"), pptx(LONG)])
@pytest.mark.parametrize(("dialect", "place"), PLACES)
async def test_a_document_without_a_value_is_sent_unchanged(
    detectors: InProcessDetectors, dialect: str, place: Any, document: bytes
) -> None:
    harness = engine(detectors, dialect, unreadable="block")
    status, _ = await ask(harness, place(document), dialect)
    assert status == 200
    assert b64encode(document) in harness.outbound.sent[0].body
    assert events(harness) == []


@pytest.mark.parametrize(
    ("action", "status", "effect"),
    [("log_only", 200, "logged"), ("prompt", 403, "blocked"), ("block", 403, "blocked"), ("redact", 403, "blocked")],
)
async def test_the_rule_decides_and_requests_no_approval_for_a_document(
    detectors: InProcessDetectors, action: str, status: int, effect: str
) -> None:
    harness = engine(detectors, action=action)
    harness.flags = {"human_in_loop": True}
    assert (await ask(harness, chat(pdf(CARD))))[0] == status
    assert events(harness) == [("credit_card", effect, 1)]
    assert harness.approval_questions == []


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (f"{LONG} card {CARD} é", "utf-8"),
        (f"\ufeff{LONG} card {CARD}", "utf-16-le"),
        (f"{LONG} card {CARD}", "utf-16-be"),
        (f"\ufeff{LONG} card {CARD}", "utf-32-le"),
        (f"{LONG} für {CARD}", "cp1252"),
        (f"\x1b[1m{LONG}\x1b[0m {CARD}", "utf-8"),
        (JAPANESE, "shift_jis"),
    ],
)
@pytest.mark.parametrize(("dialect", "place"), PLACES)
async def test_a_file_of_text_is_redacted_in_its_encoding(
    detectors: InProcessDetectors, dialect: str, place: Any, text: str, encoding: str
) -> None:
    harness = engine(detectors, dialect)
    data = text.encode(encoding)
    assert (await ask(harness, place(data, "text/plain"), dialect))[0] == 200
    body = json.loads(harness.outbound.sent[0].body)
    (sent,) = [value for value in _strings(body) if len(value) > 150]
    file = b64decode(sent.rpartition(",")[2]).decode(encoding)
    if text.count(CARD) == 1:
        assert file == text.replace(CARD, "[CREDIT_CARD_1]")
    assert CARD not in file
    assert "[CREDIT_CARD_1]" in file


async def test_a_bad_byte_does_not_hide_a_file_of_text(detectors: InProcessDetectors) -> None:
    harness = engine(detectors)
    assert (await ask(harness, chat(f"{LONG} {CARD} ".encode() + b"\xff\xfe\x80", "text/plain")))[0] == 200
    assert b64encode(CARD.encode())[:12] not in harness.outbound.sent[0].body
    assert events(harness) == [("credit_card", "redacted", 1)]


UNREADABLE = [
    (PNG, "image", "no_text"),
    (pdf(LONG, encrypted=True), "file", "encrypted"),
    (pdf(LONG, picture=True), "image", "no_text"),
    (b"7z\xbc\xaf\x27\x1c" + bytes(300), "file", "unknown_format"),
    (docx(LONG, broken_xml="<a>"), "file", "broken"),
]


@pytest.mark.parametrize(("data", "kind", "reason"), UNREADABLE)
async def test_an_unreadable_file_passes_with_an_event(
    detectors: InProcessDetectors, data: bytes, kind: str, reason: str
) -> None:
    harness = engine(detectors)
    assert (await ask(harness, chat(data)))[0] == 200
    (event,) = harness.outcomes[0].dlp_events
    assert (event.entity_type, event.status) == (kind, "logged")
    assert reason in json.dumps([str(value) for value in (event.rule_name, event.rule_id)])


@pytest.mark.parametrize(("data", "kind", "reason"), UNREADABLE)
@pytest.mark.parametrize("by_flag", [True, False])
async def test_an_unreadable_file_is_blocked_by_the_setting_or_by_the_organization(
    detectors: InProcessDetectors, by_flag: bool, data: bytes, kind: str, reason: str
) -> None:
    harness = engine(detectors, unreadable="log_only" if by_flag else "block")
    harness.flags = {"block_unreadable": by_flag}
    status, body = await ask(harness, chat(data))
    assert status == 403
    assert f"{kind}: {reason}" in json.dumps(body)
    assert harness.outbound.sent == []
    assert events(harness) == [(kind, "blocked", 1)]


async def test_without_a_document_reader_the_fail_mode_decides() -> None:
    harness = engine(None)
    assert (await ask(harness, chat(pdf(CARD))))[0] == 503
    harness = engine(None, fail_mode="open")
    assert (await ask(harness, chat(pdf(CARD))))[0] == 200
    assert ("file", "logged", 1) in events(harness)
    harness = engine(None, fail_mode="open", unreadable="block")
    assert (await ask(harness, chat(pdf(CARD))))[0] == 403


async def test_a_bounded_number_of_documents_of_a_request_is_read(
    detectors: InProcessDetectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachments, "MAX_FILES", 2)
    harness = engine(detectors)
    body = chat(pdf(LONG))
    (part,) = body["messages"][0]["content"]
    body["messages"][0]["content"] = [part, part, part]
    assert (await ask(harness, body))[0] == 200
    (event,) = harness.outcomes[0].dlp_events
    assert "too_many" in str(event.rule_name)


async def test_documents_are_not_read_once_the_time_is_up(detectors: InProcessDetectors) -> None:
    harness = engine(detectors, document_seconds=0.0)
    assert (await ask(harness, chat(pdf(CARD))))[0] == 200
    (event,) = harness.outcomes[0].dlp_events
    assert "timeout" in str(event.rule_name)


async def test_a_document_and_the_other_texts_share_one_decision(detectors: InProcessDetectors) -> None:
    harness = engine(detectors)
    body = chat(pdf(LONG))
    body["messages"][0]["content"].append({"type": "text", "text": f"card {CARD}"})
    assert (await ask(harness, body))[0] == 200
    assert b"[CREDIT_CARD_1]" in harness.outbound.sent[0].body
    assert b64encode(pdf(LONG)) in harness.outbound.sent[0].body


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [string for item in value.values() for string in _strings(item)]
    return [string for item in value for string in _strings(item)] if isinstance(value, list) else []
