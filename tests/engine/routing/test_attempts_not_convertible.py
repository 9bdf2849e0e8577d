"""Chains of providers with different APIs, of which some cannot express a call."""

import json
from typing import Any

import pytest
from tests.engine.routing.deployments.aliases import alias_record
from tests.support.engine import EngineHarness, completion

from gatehouse.engine.exchange import Answer

OK = (200, [completion()])
FAILED = (500, [b"{}"])
#: `n` is a field of chat completions that no other API has.
TWO_ANSWERS = {"n": 2}


@pytest.fixture
def harness() -> EngineHarness:
    harness = EngineHarness()
    harness.serve("openai", "m")
    harness.serve("claude", "m", kind="anthropic", base_url="http://claude.test")
    harness.serve("google", "m", kind="gemini", base_url="http://google.test")
    return harness


async def ask(harness: EngineHarness, *script: Any, **fields: Any) -> tuple[Answer, list[str]]:
    """Return the answer to one request, and the providers that were called, in order."""
    harness.outbound.script = list(script)
    harness.outbound.sent.clear()
    body = {"model": "fast", "messages": [{"role": "user", "content": "Hi"}], **fields}
    answer = await harness.engine.answer(harness.request(body))
    assert harness.outbound.script == []
    return answer, [request.url.removeprefix("http://").partition(".")[0] for request in harness.outbound.sent]


def reasons(harness: EngineHarness) -> list[tuple[str, str]]:
    return [(attempt.provider, attempt.reason) for attempt in harness.outcomes[-1].attempts]


async def test_a_deployment_that_cannot_express_the_call_is_passed_over(harness: EngineHarness) -> None:
    harness.model_aliases = (alias_record("fast", {"provider": "claude"}, {"provider": "openai", "tier": 1}),)
    answer, called = await ask(harness, OK, **TWO_ANSWERS)
    assert (answer.status, called) == (200, ["openai"])
    assert reasons(harness) == [("claude", "not_convertible")]
    assert (harness.outcomes[-1].provider, harness.outcomes[-1].fallbacks) == ("openai", 1)


async def test_so_is_a_fallback_that_the_request_names(harness: EngineHarness) -> None:
    answer, called = await ask(harness, OK, model="claude/m", fallbacks=["google/m", "openai/m"], **TWO_ANSWERS)
    assert (answer.status, called) == (200, ["openai"])
    assert reasons(harness) == [("claude", "not_convertible"), ("google", "not_convertible")]


async def test_the_refusal_is_returned_if_no_deployment_can_express_the_call(harness: EngineHarness) -> None:
    harness.model_aliases = (alias_record("fast", {"provider": "claude"}, {"provider": "google", "tier": 1}),)
    answer, called = await ask(harness, **TWO_ANSWERS)
    assert (answer.status, called) == (400, [])
    error = json.loads(answer.body)["error"]
    assert (error["code"], error["param"]) == ("invalid_value", "n")
    outcome = harness.outcomes[-1]
    assert (outcome.outcome, outcome.provider, outcome.model_alias) == ("refused", "claude", "fast")
    assert reasons(harness) == [("claude", "not_convertible"), ("google", "not_convertible")]


async def test_the_failure_of_a_deployment_that_can_express_the_call_is_returned(harness: EngineHarness) -> None:
    harness.model_aliases = (alias_record("fast", {"provider": "openai"}, {"provider": "claude", "tier": 1}),)
    answer, called = await ask(harness, FAILED, **TWO_ANSWERS)
    assert (answer.status, called) == (502, ["openai"])
    attempts = json.loads(answer.body)["error"]["attempts"]
    assert [attempt["reason"] for attempt in attempts] == ["http_500", "not_convertible"]


async def test_a_full_deployment_that_can_express_the_call_asks_for_patience(harness: EngineHarness) -> None:
    harness.model_aliases = (
        alias_record("fast", {"provider": "openai", "requests_per_minute": 1}, {"provider": "claude", "tier": 1}),
    )
    assert (await ask(harness, OK, **TWO_ANSWERS))[1] == ["openai"]
    answer, called = await ask(harness, **TWO_ANSWERS)
    assert (answer.status, called) == (429, [])
    assert int(answer.headers["Retry-After"]) > 1


async def test_the_tokens_of_a_call_that_is_not_sent_do_not_count(harness: EngineHarness) -> None:
    harness.model_aliases = (
        alias_record("fast", {"provider": "claude", "tokens_per_minute": 1300}, {"provider": "openai", "tier": 1}),
    )
    assert (await ask(harness, OK, **TWO_ANSWERS))[1] == ["openai"]
    answered = b'{"content": [{"type": "text", "text": "Hi"}], "usage": {"input_tokens": 1, "output_tokens": 1}}'
    assert (await ask(harness, (200, [answered])))[1] == ["claude"]


async def test_refusals_of_conversions_do_not_open_a_circuit(harness: EngineHarness) -> None:
    harness.model_aliases = (alias_record("fast", {"provider": "claude"}, {"provider": "openai", "tier": 1}),)
    for _ in range(6):
        await ask(harness, OK, **TWO_ANSWERS)
    assert reasons(harness) == [("claude", "not_convertible")]
