"""Copies of requests for the shadows of an alias: their share, their records, and what they must not affect."""

import asyncio
from typing import Any

import msgspec
import pytest
from tests.engine.routing.deployments.aliases import alias_record
from tests.support.engine import EngineHarness, completion, events

from gatehouse.engine.conversation.call import FilePart, NativeOptions, resolved_call
from gatehouse.engine.exchange import Exchange
from gatehouse.engine.routing import shadows
from gatehouse.foundation.errors import PaymentRequired
from gatehouse.policy.model_access import ModelAccessRecord

OK = (200, [completion()])
SHADOW = {"provider": "two", "role": "shadow"}


@pytest.fixture
def harness() -> EngineHarness:
    harness = EngineHarness(RATE_LIMIT_REQUESTS_PER_MINUTE="100000")
    for name in ("one", "two"):
        harness.serve(name, "m")
    harness.model_aliases = (alias_record("fast", {"provider": "one"}, SHADOW),)
    return harness


async def ask(harness: EngineHarness, *script: Any, **fields: Any) -> tuple[int, list[str]]:
    """Return the status of one answer, and the providers that were called until all copies have ended."""
    harness.outbound.script = list(script)
    harness.outbound.sent.clear()
    body = {"model": "fast", "messages": [{"role": "user", "content": "Hi"}], **fields}
    answer = await harness.engine.answer(harness.request(body))
    if answer.stream is not None:
        async for _ in answer.stream:
            pass
    await harness.engine.shadows.wait()
    assert harness.outbound.script == []
    return answer.status, [request.url.removeprefix("http://").partition(".")[0] for request in harness.outbound.sent]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_copy_has_its_own_record(harness: EngineHarness, stream: bool) -> None:
    script = (
        [(200, events("a")), (200, events("b", usage=(20, 9)))] if stream else [OK, (200, [completion(usage=(20, 9))])]
    )
    assert await ask(harness, *script, stream=stream) == (200, ["one", "two"])
    answered, copied = harness.outcomes
    assert (answered.provider, answered.shadow, answered.model_alias) == ("one", False, "fast")
    assert (copied.provider, copied.shadow, copied.model_alias, copied.outcome) == ("two", True, "fast", "success")
    assert (copied.input_tokens, copied.output_tokens, copied.cost_usd) == (20, 9, "0.000038")
    assert copied.request_id == answered.request_id
    assert (answered.user_id, copied.user_id, copied.api_key_id) == (
        harness.caller and harness.caller.user_id,
        None,
        None,
    )
    first, second = harness.outbound.sent
    assert first.body == second.body


async def test_the_share_of_copies_is_exact(harness: EngineHarness) -> None:
    harness.model_aliases = (alias_record("fast", {"provider": "one"}, {**SHADOW, "share": 0.3}),)
    copies = 0
    for _ in range(50):
        harness.outbound.script = [OK, OK]
        body = {"model": "fast", "messages": [{"role": "user", "content": "Hi"}]}
        await harness.engine.answer(harness.request(body))
        copies += len(harness.engine.shadows)
        await harness.engine.shadows.wait()
    assert copies == 15


@pytest.mark.parametrize("failure", [(500, [b"{}"]), (200, [b"no json"]), OSError("broken")])
async def test_the_failure_of_a_copy_is_only_recorded(harness: EngineHarness, failure: Any) -> None:
    assert await ask(harness, OK, failure) == (200, ["one", "two"])
    assert [(outcome.outcome, outcome.shadow) for outcome in harness.outcomes] == [("success", False), ("error", True)]


async def test_the_answer_does_not_wait_and_copies_are_bounded(
    harness: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadows, "MAX_SHADOWS_IN_PROGRESS", 2)
    body = {"model": "fast", "messages": [{"role": "user", "content": "Hi"}]}
    for count in (1, 2, 2):
        harness.outbound.script = [OK]
        answer = await harness.engine.answer(harness.request(body))
        # From here on providers answer nothing, so that the copies stay in progress.
        harness.stop.at = "connecting"
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (answer.status, len(harness.engine.shadows)) == (200, count)
        harness.stop.at = None
    await harness.engine.shadows.stop()
    assert len(harness.engine.shadows) == 0
    assert sorted(outcome.outcome for outcome in harness.outcomes) == ["cancelled", "cancelled", *["success"] * 3]


async def test_no_copy_starts_after_the_stop(harness: EngineHarness) -> None:
    await harness.engine.shadows.stop()
    assert await ask(harness, OK) == (200, ["one"])


async def test_a_copy_needs_the_callers_access_and_no_kill_switch(harness: EngineHarness) -> None:
    assert harness.caller is not None
    group = harness.caller.user_id
    assert group is not None
    harness.caller = msgspec.structs.replace(harness.caller, groups=(group,))
    harness.model_access = (ModelAccessRecord(group_id=group, model="two/m", access_type="DENY"),)
    assert await ask(harness, OK) == (200, ["one"])
    harness.model_access = ()
    assert await ask(harness, OK, OK) == (200, ["one", "two"])
    harness.providers[1] = msgspec.structs.replace(harness.providers[1], enabled=False)
    assert await ask(harness, OK) == (200, ["one"])


async def test_a_copy_without_room_in_a_budget_is_not_sent(
    harness: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    users: list[Any] = []
    reserve = harness.reserve

    async def refusing(budgets: Any, taking: Any, *, enforced: bool, user_id: Any = None) -> Any:
        users.append(user_id)
        if user_id is None:
            raise PaymentRequired("The budget is exhausted.")
        return await reserve(budgets, taking, enforced=enforced, user_id=user_id)

    monkeypatch.setattr(harness, "reserve", refusing)
    assert await ask(harness, OK) == (200, ["one"])
    assert harness.caller is not None
    assert users == [harness.caller.user_id, None]
    assert len(harness.outcomes) == 1


async def test_refused_requests_and_large_bodies_are_not_copied(
    harness: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, called = await ask(harness, (400, [b'{"error": {"message": "no"}}']))
    assert (status, called) == (400, ["one"])
    monkeypatch.setattr(shadows, "MAX_SHADOW_BODY_BYTES", 1_000)
    assert await ask(harness, OK, user="x" * 1_000) == (200, ["one"])
    assert await ask(harness, OK, OK) == (200, ["one", "two"])


@pytest.mark.parametrize(
    "fields", [{"web_search_options": {}}, {"tools": [{"type": "web_search"}]}, {"store": True}], ids=str
)
async def test_requests_with_side_effects_at_the_provider_are_not_copied(
    harness: EngineHarness, fields: dict[str, Any]
) -> None:
    harness.allowed_fields = ("web_search_options", "store", "tools.web_search")
    assert await ask(harness, OK, **fields) == (200, ["one"])
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    assert await ask(harness, OK, OK, tools=tools, store=False) == (200, ["one", "two"])


async def test_calls_that_may_be_stored_and_large_files_are_not_copied(
    harness: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadows, "MAX_SHADOW_BODY_BYTES", 1_000)
    ended: list[Exchange] = []
    monkeypatch.setattr(harness.engine.shadows, "follow", ended.append)
    await ask(harness, OK)
    (exchange,) = ended
    assert exchange.call_request is not None
    call = exchange.call_request.call
    assert shadows._is_copied(exchange)
    kept = resolved_call(call, NativeOptions(keeps=True), None)
    exchange.call_request = msgspec.structs.replace(exchange.call_request, call=kept)
    assert not shadows._is_copied(exchange)
    exchange.call_request = msgspec.structs.replace(exchange.call_request, call=call)
    for size in (500, 1_000):
        call.files = (FilePart(name="file", data=memoryview(bytes(size)), extension="wav", media_type="audio/wav"),)
        assert shadows._is_copied(exchange) == (size == 500)
