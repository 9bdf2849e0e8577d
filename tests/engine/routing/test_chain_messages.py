"""Errors that lead to fallbacks, the number of skipped models, and the message of a failed chain."""

import json
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from tests.engine.routing.test_chain_routed import ask, engine, record
from tests.support.engine import EngineHarness, completion

from gatehouse.engine.exchange import Answer
from gatehouse.foundation.outbound import OutboundTimeout
from gatehouse.policy.catalog import ModelFilters

GOOD = (200, [completion()])
SECRET_WORDS = b'{"error": {"message": "key sk-secret12345678 of Acme Inc. is no good"}}'


def error(answer: Answer) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(answer.body)
    return dict(body["error"])


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_retired_model_and_refused_credentials_lead_to_fallbacks(status: int) -> None:
    harness = engine()
    harness.outbound.script = [(status, [SECRET_WORDS]), GOOD]
    answer = await ask(harness, "one/m1", fallbacks=["two/m2"])
    assert (answer.status, answer.headers["X-Gateway-Provider"]) == (200, "two")
    assert (answer.headers["X-Gateway-Fallbacks"], harness.outcomes[0].fallbacks) == ("1", 1)


@pytest.mark.parametrize(("status", "shown"), [(400, 400), (413, 413), (422, 400)])
async def test_an_error_of_the_request_is_returned(status: int, shown: int) -> None:
    harness = engine()
    harness.outbound.script = [(status, [b"{}"]), GOOD]
    answer = await ask(harness, "one/m1", fallbacks=["two/m2"])
    assert answer.status == shown
    assert len(harness.outbound.sent) == 1


@pytest.mark.parametrize(
    ("script", "status", "code", "reason", "words"),
    [
        ([(500, [SECRET_WORDS]), (401, [SECRET_WORDS])], 502, "all_providers_failed", "unauthorized", "credentials"),
        ([(500, [SECRET_WORDS]), (503, [SECRET_WORDS])], 502, "all_providers_failed", "http_503", "status 503"),
        ([OutboundTimeout(), OutboundTimeout()], 504, "provider_timeout", "timeout", "in time"),
        ([(404, [SECRET_WORDS]), (404, [SECRET_WORDS])], 404, "model_not_found", "model_not_found", "not have"),
    ],
)
async def test_the_message_of_a_failed_chain_names_the_last_attempt(
    script: Any, status: int, code: str, reason: str, words: str
) -> None:
    harness = engine()
    harness.outbound.script = script
    answer = await ask(harness, "one/m1", fallbacks=["two/m2"])
    fault = error(answer)
    assert (answer.status, fault["code"], fault["attempts"][-1]["reason"]) == (status, code, reason)
    assert f"two/m2, {reason}." in fault["message"]
    assert words in fault["message"]
    assert "secret" not in answer.body.decode()
    assert "Acme" not in answer.body.decode()


def passed_over(how: str, harness: EngineHarness) -> str:
    """Make the first model unable to answer. Returns the name of the model."""
    match how:
        case "kill switch":
            harness.off = {"m1"}
        case "disabled provider":
            harness.providers[0] = msgspec.structs.replace(harness.providers[0], enabled=False)
        case "inactive":
            harness.models[0] = msgspec.structs.replace(harness.models[0], is_active=False)
        case "unknown":
            return "one/none"
        case "unhealthy":
            harness.unhealthy = {"one"}
    return "one/m1"


@pytest.mark.parametrize("how", ["kill switch", "disabled provider", "inactive", "unknown", "unhealthy"])
@pytest.mark.parametrize("by", ["request", "policy"])
async def test_a_skipped_first_model_counts_as_a_fallback(how: str, by: str) -> None:
    harness = engine(*([record("manual_fallback", "two/m2")] if by == "policy" else []))
    name = passed_over(how, harness)
    harness.outbound.script = [GOOD]
    more = {"fallbacks": ["two/m2"]} if by == "request" else {}
    answer = await ask(harness, name, **more)
    expected = 200 if by == "request" or how not in {"unknown", "inactive"} else 404
    assert answer.status == expected
    if expected == 200:
        assert (answer.headers["X-Gateway-Provider"], answer.headers["X-Gateway-Fallbacks"]) == ("two", "1")
        assert harness.outcomes[0].fallbacks == 1


async def test_a_chain_whose_first_entry_is_switched_off_counts_it() -> None:
    harness = engine(record("manual_fallback", "one/m1", "two/m2", "three/m3"))
    harness.off = {"m1"}
    harness.outbound.script = [(500, [b"{}"]), GOOD]
    answer = await ask(harness)
    assert (answer.headers["X-Gateway-Provider"], answer.headers["X-Gateway-Fallbacks"]) == ("three", "2")


async def test_an_answering_first_choice_is_no_fallback() -> None:
    for item in (engine(), engine(record("manual_fallback", "one/m1", "two/m2")), engine(record("cost_optimized"))):
        item.outbound.script = [GOOD]
        model = "auto" if item.routing_policies else "one/m1"
        answer = await ask(item, model, fallbacks=["two/m2"])
        assert (answer.headers["X-Gateway-Provider"], answer.headers["X-Gateway-Fallbacks"]) == ("one", "0")


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        (ModelFilters(required_capabilities=frozenset({"vision"})), "required_capabilities excludes 5 of 5"),
        (ModelFilters(min_context_window=1_000_000), "min_context_window excludes 5 of 5"),
        (
            ModelFilters(max_cost_per_1k_input_tokens_usd=Decimal("0.0000001"), included_providers=frozenset({"one"})),
            "included_providers excludes 4 of 5, max_cost_per_1k_input_tokens_usd excludes 5 of 5",
        ),
    ],
)
async def test_the_message_names_the_filters_that_no_model_passes(filters: ModelFilters, words: str) -> None:
    harness = engine(record("cost_optimized", model_filters=filters))
    answer = await ask(harness)
    assert (answer.status, error(answer)["code"]) == (400, "no_capable_model")
    assert words in error(answer)["message"]
