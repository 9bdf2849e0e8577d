"""The end user and the tags of a call in its journal entries."""

import json
from typing import Any

import msgspec
import pytest
from tests.support.engine import EngineHarness, completion, events
from tests.support.journal import outcome

from gatehouse.engine.dlp.tiers import DlpOptions
from gatehouse.engine.exchange import Answer
from gatehouse.engine.records.outcome import decode, decode_with_text_ids, encode
from gatehouse.foundation.ids import new_id
from gatehouse.policy.governance import DlpRuleRecord, GovernanceRecords

HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
MESSAGES: dict[str, Any] = {**HELLO, "max_tokens": 9}
CARD = "4111 1111 1111 1111"


@pytest.fixture
def harness() -> EngineHarness:
    harness = EngineHarness(dlp=DlpOptions())
    harness.serve("one", "m")
    harness.outbound.script.append((200, [completion()]))
    return harness


async def ask(
    harness: EngineHarness, body: dict[str, Any], dialect: str = "openai_chat", tags: str | None = None
) -> Answer:
    received = harness.request({"model": "one/m", **body}, dialect=dialect)
    if tags is not None:
        received = msgspec.structs.replace(received, headers={"x-gateway-tags": tags})
    return await harness.engine.answer(received)


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        ("openai_chat", {**HELLO, "user": "customer-1"}),
        ("openai_chat", {**HELLO, "safety_identifier": "customer-1"}),
        ("openai_chat", {**HELLO, "user": "customer-1", "safety_identifier": "hashed"}),
        ("openai_responses", {"input": "hi", "user": "customer-1"}),
        ("openai_responses", {"input": "hi", "safety_identifier": "customer-1"}),
        ("openai_embeddings", {"input": "hi", "user": "customer-1"}),
        ("anthropic_messages", {**MESSAGES, "metadata": {"user_id": "customer-1"}}),
    ],
)
async def test_the_end_user_is_recorded_in_every_dialect(
    harness: EngineHarness, dialect: str, body: dict[str, Any]
) -> None:
    await ask(harness, body, dialect)
    (recorded,) = harness.outcomes
    assert (recorded.end_user, recorded.tags) == ("customer-1", ())


@pytest.mark.parametrize(
    ("user", "recorded"),
    [
        ("x" * 300, "x" * 256),
        ("a\x1bb\nc\x7fd\x85e", "abcde"),
        ("имя 名前", "имя 名前"),
        ("\x01\x02", None),
        ("", None),
    ],
)
async def test_an_end_user_is_bounded(harness: EngineHarness, user: str, recorded: str | None) -> None:
    await ask(harness, {**MESSAGES, "metadata": {"user_id": user}}, "anthropic_messages")
    assert [(outcome.status, outcome.end_user) for outcome in harness.outcomes] == [(200, recorded)]


@pytest.mark.parametrize("metadata", [None, {}, {"user_id": 7}, {"user_id": ["x"]}])
async def test_a_value_that_is_no_text_is_no_end_user(harness: EngineHarness, metadata: Any) -> None:
    await ask(harness, {**MESSAGES, "metadata": metadata}, "anthropic_messages")
    assert [outcome.end_user for outcome in harness.outcomes] == [None]


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        ("openai_chat", {**HELLO, "user": f"card {CARD}"}),
        ("openai_responses", {"input": "hi", "safety_identifier": f"card {CARD}"}),
        ("anthropic_messages", {**MESSAGES, "metadata": {"user_id": f"card {CARD}"}}),
    ],
)
async def test_a_redacted_end_user_is_recorded_as_it_was_sent_on(
    harness: EngineHarness, dialect: str, body: dict[str, Any]
) -> None:
    await ask(harness, body, dialect)
    assert [outcome.end_user for outcome in harness.outcomes] == ["card [CREDIT_CARD_1]"]
    assert CARD not in str(harness.entries)


async def test_a_blocked_call_is_recorded_with_its_tags_and_without_an_end_user(harness: EngineHarness) -> None:
    block = {"id": "r-1", "name": "cards", "detector_type": "regex", "entity_type": "credit_card", "action": "block"}
    harness.governance = GovernanceRecords(dlp_rules=(msgspec.convert(block, DlpRuleRecord),))
    await ask(harness, {**HELLO, "user": f"card {CARD}"}, tags="team=search")
    (recorded,) = harness.outcomes
    assert (recorded.outcome, recorded.end_user, recorded.tags) == ("refused", None, ("team=search",))
    assert CARD not in str(harness.entries)


@pytest.mark.parametrize(
    ("header", "tags"),
    [
        ("team=search,env=prod", ("team=search", "env=prod")),
        (" a , ,b,\ta,", ("a", "b")),
        ("", ()),
        (",".join("x" * 63 + str(number) for number in range(10)), tuple("x" * 63 + str(n) for n in range(10))),
    ],
)
async def test_tags_are_recorded_once_each_in_their_order(
    harness: EngineHarness, header: str, tags: tuple[str, ...]
) -> None:
    assert (await ask(harness, HELLO, tags=header)).status == 200
    assert [outcome.tags for outcome in harness.outcomes] == [tags]


@pytest.mark.parametrize("dialect", ["openai_chat", "openai_responses", "openai_embeddings", "anthropic_messages"])
@pytest.mark.parametrize(
    "header",
    [
        "a b", "jane@example.com", "a;b", "naïve", "x" * 65, ",".join(map(str, range(11))), "a\x00", "," * 3000,
        "a," * 1500,
    ],
)  # fmt: skip
async def test_a_bad_header_is_refused_by_name_and_the_refusal_is_recorded(
    harness: EngineHarness, dialect: str, header: str
) -> None:
    answer = await ask(harness, {**MESSAGES, "input": "hi"}, dialect, tags=header)
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["code"], error["param"]) == (400, "invalid_value", "X-Gateway-Tags")
    assert "X-Gateway-Tags" in error["message"]
    assert [(outcome.error_code, outcome.tags) for outcome in harness.outcomes] == [("invalid_value", ())]
    assert harness.outbound.sent == []


async def test_a_refused_call_keeps_its_tags_and_end_user(harness: EngineHarness) -> None:
    answer = await ask(harness, {**HELLO, "model": "none/n", "user": "customer-1"}, tags="a")
    assert answer.status == 404
    assert [(outcome.end_user, outcome.tags) for outcome in harness.outcomes] == [("customer-1", ("a",))]


async def test_the_entry_that_opens_a_stream_has_tags_and_end_user(harness: EngineHarness) -> None:
    harness.outbound.script = [(200, events("Hello"))]
    answer = await ask(harness, {**HELLO, "stream": True, "user": "customer-1"}, tags="a")
    assert answer.stream is not None
    assert [(opened.end_user, opened.tags) for opened in harness.opened] == [("customer-1", ("a",))]
    await answer.stream.aclose()  # type: ignore[attr-defined]


def test_an_entry_of_an_earlier_version_is_read_without_tags_and_end_user() -> None:
    fields = json.loads(encode(outcome(new_id(), end_user="customer-1", tags=("a",))))
    before = fields[: fields.index("customer-1")]
    for read in (decode(json.dumps(before).encode()), decode_with_text_ids(json.dumps(before).encode())):
        assert (read.outcome, read.end_user, read.tags) == ("success", None, ())  # type: ignore[union-attr]


def test_an_entry_of_a_later_version_is_read_without_its_additional_fields() -> None:
    """The previous version, which has no end user and tags, reads entries of this version in the same way."""
    later = [*json.loads(encode(outcome(new_id(), end_user="customer-1", tags=("a",)))), "new", ["newer"]]
    read = decode(json.dumps(later).encode())
    assert (read.end_user, read.tags) == ("customer-1", ("a",))  # type: ignore[union-attr]
