"""An organization's custom patterns in requests, answers and streams, through the whole engine."""

import json
from typing import Any

import pytest
from tests.engine.dlp.test_streams import cut, engine, openai, streamed, text_of_stream, whole
from tests.support.engine import EngineHarness, completion

from gatehouse.detection.search import walks
from gatehouse.detection.separator import BETWEEN_TEXTS
from gatehouse.policy.governance import DlpRuleRecord

KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "MIIEowIBAAKCAQEA0Zq7/x+vTg8wJm5n2Lr3Xb1c\n" * 25
    + "-----END RSA PRIVATE KEY-----"
)


def own(pattern: str, action: str = "redact") -> DlpRuleRecord:
    return DlpRuleRecord(
        id="own", name="own", detector_type="regex", entity_type="own", action=action, pattern=pattern, reversible=False
    )


async def sent(harness: EngineHarness, *contents: Any) -> list[Any]:
    """Return the contents of the messages that the provider receives."""
    harness.outbound.script = [(200, [completion()])]
    messages = [{"role": "user", "content": content} for content in contents]
    answer = await harness.engine.answer(harness.request({"model": "one/m", "messages": messages}))
    assert answer.status == 200, answer.body
    return [message["content"] for message in json.loads(harness.outbound.sent[-1].body)["messages"]]


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        (r"BEGIN SECRET[\s\S]+?END SECRET", "BEGIN SECRET" + "abc" * 40 + "END SECRET"),
        (r"-----BEGIN[A-Z ]+-----[\s\S]+?-----END[A-Z ]+-----", KEY.replace("RSA PRIVATE", "OWN")),
        ("[0-9]+", "5" * 250),
        ("BEGIN.*END", "BEGIN" + "x" * 20_000 + "END"),
    ],
)
async def test_a_long_match_is_completely_redacted_in_requests_answers_and_streams(pattern: str, value: str) -> None:
    harness = engine("openai_compatible", own(pattern))
    text, expected = f"Look: {value}.", "Look: [OWN_1]."
    assert await sent(harness, text) == [expected]
    assert await whole(harness, "openai_chat", "openai_chat", text) == expected
    if len(value) <= 4096:
        raw = await streamed(harness, "openai_chat", "openai_chat", cut(text, range(0, len(text), 7)))
        assert text_of_stream("openai_chat", raw, arguments=False) == expected


async def test_no_part_of_a_match_longer_than_the_window_of_a_stream_is_sent() -> None:
    harness = engine("openai_compatible", own("[0-9]+"))
    text = "No. " + "7" * 10_000 + "."
    raw = await streamed(harness, "openai_chat", "openai_chat", cut(text, range(0, len(text), 50)))
    assert text_of_stream("openai_chat", raw, arguments=False) == "No. [OWN_1][OWN_1][OWN_2]."


async def test_a_stream_continues_where_no_match_is_possible() -> None:
    harness = engine("openai_compatible", own(r"BEGIN\w*;"))
    text = "BEGINNING of it" + " and so on" * 60 + " BEGIN" + "x" * 2_000
    harness.outbound.script = [(200, list(openai(cut(text, range(0, len(text), 10)), arguments=False)))]
    body = {"model": "one/m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    answer = await harness.engine.answer(harness.request(body))
    assert answer.stream is not None
    arrived = [text_of_stream("openai_chat", block, arguments=False) async for block in answer.stream]
    assert "".join(arrived) == text
    # The last match waits for its end. All other text waits no longer than any text does.
    *lengths, longest = sorted(map(len, arrived))
    assert lengths[-1] < 320
    assert longest > 2_000


async def test_a_match_does_not_cross_two_messages() -> None:
    harness = engine("openai_compatible", own(r"BEGIN[\s\S]+END"))
    assert await sent(harness, "BEGIN one", "two END") == ["BEGIN one", "two END"]
    assert await sent(harness, f"BEGIN{BETWEEN_TEXTS}END") == ["[OWN_1]"]


async def test_parts_of_a_message_are_searched_as_one_text() -> None:
    harness = engine("openai_compatible", own(r"BEGIN[\s\S]+END"))
    (parts,) = await sent(harness, [{"type": "text", "text": "é BEGIN one"}, {"type": "text", "text": "two END."}])
    assert [part["text"] for part in parts] == ["é [OWN_1]", "[OWN_1]."]


async def test_anchors_match_the_ends_of_each_text_of_a_request() -> None:
    harness = engine("openai_compatible", own(r"^EMP-\d+$"))
    contents = ("EMP-1", "an EMP-2", "EMP-3\n", "EMP-4", "", "\n EMP-5")
    assert await sent(harness, *contents) == ["[OWN_1]", "an EMP-2", "EMP-3\n", "[OWN_2]", "", "\n EMP-5"]
    (parts,) = await sent(harness, [{"type": "text", "text": "EMP-1"}, {"type": "text", "text": "EMP-2 and"}])
    assert [part["text"] for part in parts] == ["[OWN_1]", "EMP-2 and"]


@pytest.mark.parametrize(("fail_mode", "status"), [("closed", 503), ("open", 200)])
async def test_a_search_that_takes_too_long_is_a_failure_of_the_pattern_tier(
    monkeypatch: pytest.MonkeyPatch, fail_mode: str, status: int
) -> None:
    monkeypatch.setattr(walks, "MIN_SEARCHED_BYTES", 0)
    harness = engine("openai_compatible", own("a(?:[^b]*b)?"), fail_mode=fail_mode)
    harness.outbound.script = [(200, [completion()])]
    messages = [{"role": "user", "content": "a" * 200_000 + " 4111 1111 1111 1111"}]
    answer = await harness.engine.answer(harness.request({"model": "one/m", "messages": messages}))
    assert answer.status == status
    if status == 200:
        assert "4111" not in harness.outbound.sent[-1].body.decode()
    else:
        assert json.loads(answer.body)["error"]["code"] == "dlp_unavailable"
    (failure,) = [event for event in harness.outcomes[-1].dlp_events if event.entity_type == "tier_failure"]
    assert (failure.rule_name, failure.detector_type) == ("regex: too_long", "regex")
