"""Forms with images and recordings, and speech, through the engine."""

import json
from typing import Any

import msgspec
import pytest
from tests.engine.conversation.decoding.test_multipart import TYPE, file, form, value
from tests.engine.dlp.scenarios.test_requests import rule
from tests.engine.stages.calls.test_content_filters import keywords
from tests.support.engine import EngineHarness

from gatehouse.engine.conversation.decoding.multipart import read_form
from gatehouse.engine.dlp.tiers import DlpOptions
from gatehouse.engine.exchange import Answer
from gatehouse.engine.streaming import AnswerBroken
from gatehouse.foundation.outbound import BrokenOff
from gatehouse.policy.governance import GovernanceRecords

CARD = "4111 1111 1111 1111"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(range(256))
IMAGES = json.dumps({"created": 1, "data": [{"url": "https://vendor.test/1.png"}]}).encode()


def engine(kind: str = "openai", **options: Any) -> EngineHarness:
    harness = EngineHarness(**options)
    harness.serve("one", "m", kind=kind)
    harness.governance = GovernanceRecords(dlp_rules=(rule("credit_card", "redact"),))
    return harness


async def send(harness: EngineHarness, dialect: str, *parts: tuple[str, bytes]) -> Answer:
    request = harness.request(form(value("model", "one/m"), *parts), dialect=dialect)
    request = msgspec.structs.replace(request, headers={"content-type": TYPE})
    return await harness.engine.answer(request)


def sent_form(harness: EngineHarness) -> tuple[str, Any]:
    [sent] = harness.outbound.sent
    return sent.url, read_form(sent.headers["Content-Type"], sent.body)


def error_of(answer: Answer) -> tuple[int, str, Any]:
    error = json.loads(answer.body)["error"]
    return answer.status, error["code"], error.get("param")


async def transcribe(harness: EngineHarness, *parts: tuple[str, bytes]) -> Answer:
    return await send(harness, "openai_transcriptions", file("file", WAV, "call with Ann.wav"), *parts)


async def test_an_edit_sends_the_redacted_prompt_and_the_images() -> None:
    harness = engine()
    harness.outbound.script = [(200, [IMAGES])]
    parts = (
        value("prompt", f"card {CARD}"),
        value("n", "2"),
        file("image[]", PNG),
        file("image[]", PNG + b"2"),
        file("mask", PNG),
    )
    answer = await send(harness, "openai_image_edits", *parts)
    assert (answer.status, answer.body) == (200, IMAGES)
    url, (values, files) = sent_form(harness)
    assert url == "http://one.test/v1/images/edits"
    assert values == {"model": "m", "prompt": "card [CREDIT_CARD_1]", "n": "2"}
    assert [(item.name, bytes(item.data)) for item in files] == [
        ("image[]", PNG),
        ("image[]", PNG + b"2"),
        ("mask", PNG),
    ]
    [outcome] = harness.outcomes
    assert (outcome.outcome, outcome.cost_usd) == ("success", None)
    counts = {(event.entity_type, event.direction): event.match_count for event in outcome.dlp_events}
    assert counts["image", "input"] == 3


async def test_unreadable_content_can_be_blocked() -> None:
    harness = engine(dlp=DlpOptions(unreadable="block"))
    answer = await transcribe(harness)
    assert error_of(answer)[1] == "dlp_violation"
    assert not harness.outbound.sent


async def test_content_filters_apply_to_a_forms_texts() -> None:
    harness = engine()
    harness.governance = GovernanceRecords(filters=(keywords(1, "falcon"),))
    answer = await transcribe(harness, value("prompt", "a falcon"))
    assert error_of(answer)[:2] == (403, "content_filter_violation")


@pytest.mark.parametrize(
    ("dialect", "parts", "param"),
    [
        ("openai_image_edits", [value("prompt")], "image"),
        ("openai_image_edits", [file("image", PNG)], "prompt"),
        ("openai_image_edits", [value("prompt"), file("image", b"a text, not an image")], "image"),
        ("openai_image_edits", [value("prompt"), file("image", WAV)], "image"),
        ("openai_image_edits", [value("prompt"), value("n", "x"), file("image", PNG)], "n"),
        ("openai_image_edits", [value("prompt"), file("image", PNG), file("document", PNG)], "document"),
        ("openai_image_variations", [], "image"),
        ("openai_image_variations", [value("n", "0"), file("image", PNG)], "n"),
        ("openai_transcriptions", [], "file"),
        ("openai_transcriptions", [value("file", "a text")], "file"),
        ("openai_transcriptions", [file("file", PNG)], "file"),
        ("openai_transcriptions", [value("stream", "true"), file("file", WAV)], "stream"),
        ("openai_transcriptions", [value("stream[]", "true"), file("file", WAV)], "stream"),
        ("openai_translations", [file("file", b"ID3 is how this text begins, and it is a text.")], "file"),
    ],
)
async def test_invalid_parts_are_named(dialect: str, parts: list[tuple[str, bytes]], param: str) -> None:
    assert error_of(await send(engine(), dialect, *parts)) == (400, "invalid_value", param)


async def test_a_json_body_is_refused() -> None:
    harness = engine()
    answer = await harness.engine.answer(harness.request({"model": "one/m"}, dialect="openai_transcriptions"))
    assert error_of(answer)[:2] == (400, "invalid_form")


@pytest.mark.parametrize("path", ["transcriptions", "translations"])
async def test_the_text_of_a_recording_is_inspected(path: str) -> None:
    harness = engine()
    usage = {"type": "tokens", "input_tokens": 20, "output_tokens": 5, "total_tokens": 25}
    segments = [{"id": 0, "text": f"my card is {CARD}", "tokens": [1, 2]}]
    body = {"text": f"my card is {CARD}", "segments": segments, "words": [{"word": "4111"}], "usage": usage}
    harness.outbound.script = [(200, [json.dumps(body).encode()])]
    answer = await send(harness, f"openai_{path}", file("file", WAV, "call with Ann.wav"), value("prompt", CARD))
    parsed = json.loads(answer.body)
    assert "4111" not in answer.body.decode()
    assert "tokens" not in parsed["segments"][0]
    url, (values, files) = sent_form(harness)
    assert url == f"http://one.test/v1/audio/{path}"
    assert values["prompt"] == "[CREDIT_CARD_1]"
    assert bytes(files[0].data) == WAV
    assert b"Ann" not in harness.outbound.sent[0].body
    [outcome] = harness.outcomes
    assert (outcome.input_tokens, outcome.output_tokens, outcome.cost_usd) == (20, 5, "0.000030")


@pytest.mark.parametrize("split", [["my card is 4111 1111", " 1111 1111 thanks"], ["4111", " 1111 11", "11 1111"]])
async def test_a_value_that_is_split_over_segments_is_redacted(split: list[str]) -> None:
    harness = engine()
    segments = [{"id": number, "text": text} for number, text in enumerate(split)]
    harness.outbound.script = [(200, [json.dumps({"text": "".join(split), "segments": segments}).encode()])]
    answer = await transcribe(harness, value("response_format", "verbose_json"))
    assert answer.status == 200
    assert "11" not in answer.body.decode()
    assert all("[CREDIT_CARD_" in segment["text"] for segment in json.loads(answer.body)["segments"])


@pytest.mark.parametrize("response_format", ["text", "srt", "vtt"])
async def test_a_plain_text_answer_is_inspected(response_format: str) -> None:
    harness = engine()
    harness.outbound.script = [(200, [f"1\nmy card is {CARD}\n".encode()])]
    answer = await transcribe(harness, value("response_format", response_format))
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert CARD.encode() not in answer.body
    assert answer.body.startswith(b"1\nmy card is ")
    assert harness.outcomes[0].cost_usd is None


async def test_an_unchanged_plain_text_passes() -> None:
    harness = engine()
    harness.outbound.script = [(200, [b"Hello \xc3\xa9\n"])]
    answer = await transcribe(harness, value("response_format", "text"))
    assert answer.body == b"Hello \xc3\xa9\n"


async def speak(harness: EngineHarness, **changes: Any) -> Answer:
    body = {"model": "one/m", "input": f"card {CARD}", "voice": "alloy", **changes}
    return await harness.engine.answer(harness.request(body, dialect="openai_speech"))


async def test_speech_passes_in_pieces() -> None:
    harness = engine()
    beginning = b"\xff\xf3" + bytes(range(100))
    pieces: list[bytes | Exception] = [beginning[:10], beginning[10:], b"\x00two", b"three"]
    harness.outbound.script = [(200, pieces, {"content-type": "audio/mpeg"})]
    answer = await speak(harness)
    assert (answer.status, answer.headers["content-type"]) == (200, "audio/mpeg")
    assert answer.stream is not None
    assert [block async for block in answer.stream] == [beginning, b"\x00two", b"three"]
    assert json.loads(harness.outbound.sent[0].body)["input"] == "card [CREDIT_CARD_1]"
    [outcome] = harness.outcomes
    assert (outcome.outcome, outcome.output_tokens) == ("success", 0)
    assert outcome.cost_usd is not None


async def test_a_broken_recording_does_not_end_like_a_complete_one() -> None:
    harness = engine()
    pieces: list[bytes | Exception] = [WAV, b"two", BrokenOff()]
    harness.outbound.script = [(200, pieces, {"content-type": "video/mp4"})]
    answer = await speak(harness)
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.stream is not None
    blocks: list[bytes] = []
    with pytest.raises(AnswerBroken):
        async for block in answer.stream:
            blocks.append(block)
    assert b"".join(blocks) in {WAV, WAV + b"two"}
    assert [outcome.outcome for outcome in harness.outcomes] == ["error"]


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"input": ""}, "input"),
        ({"input": 3}, "input"),
        ({"stream_format": "sse"}, "stream_format"),
        ({"voice": 1}, "voice"),
    ],
)
async def test_invalid_fields_of_speech_are_named(changes: dict[str, Any], param: str) -> None:
    assert error_of(await speak(engine(), **changes)) == (400, "invalid_value", param)


TEXT = f"Error: the card {CARD} is not a recording. It was sent with the status of a success.".encode()


@pytest.mark.parametrize(
    ("pieces", "media_type"),
    [
        ([b'{"text": "hi"}'], "application/json"),
        ([WAV], "Text/HTML"),
        ([TEXT], "audio/mpeg"),
        ([TEXT[:10], TEXT[10:]], "audio/mpeg"),
        ([TEXT[:10]], "audio/mpeg"),
    ],
    ids=["json", "html", "one piece", "two pieces", "short"],
)
async def test_a_text_is_not_delivered_as_speech(pieces: list[bytes | Exception], media_type: str) -> None:
    harness = engine()
    harness.outbound.script = [(200, pieces, {"content-type": media_type})]
    answer = await speak(harness)
    assert (answer.status, harness.outcomes[0].attempts[0].reason) == (502, "bad_reply")
    assert b"Error" not in answer.body
