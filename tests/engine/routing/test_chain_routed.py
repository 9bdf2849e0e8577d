"""The effect of a routing policy on a call: the candidates that are called, and those that are not."""

import json
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from tests.support.engine import EngineHarness, completion, events

from gatehouse.engine.exchange import Answer
from gatehouse.foundation.ids import new_id
from gatehouse.policy.catalog import ChainEntry, CostCap, ModelFilters, RoutingPolicyRecord
from gatehouse.policy.governance import GovernanceRecords, PolicyRuleRecord

#: Number of consecutive failures that open a circuit, by the default settings.
CIRCUIT_FAILURES = 5

HI = [{"role": "user", "content": "Hi"}]
POLICY = new_id()


def record(
    strategy: str = "cost_optimized", *chain: str, cap: str | None = None, action: str = "block", **more: Any
) -> RoutingPolicyRecord:
    entries = tuple(
        ChainEntry(provider=name.partition("/")[0], model_id=name.partition("/")[2], priority=at)
        for at, name in enumerate(chain)
    )
    limits = None if cap is None else CostCap(max_cost_per_request_usd=Decimal(cap), action_on_exceed=action)  # type: ignore[arg-type]
    return RoutingPolicyRecord(
        id=POLICY, name="p", strategy=strategy, fallback_chain=entries, cost_cap=limits, **more,  # type: ignore[arg-type]
    )  # fmt: skip


def engine(*policies: RoutingPolicyRecord) -> EngineHarness:
    """Create an engine whose models `one` to `five` cost 1 to 5 USD a million tokens."""
    harness = EngineHarness(RATE_LIMIT_REQUESTS_PER_MINUTE="1000")
    for number, name in enumerate(("one", "two", "three", "four", "five"), 1):
        harness.serve(name, "m")
        price = Decimal(number) / 1_000_000
        harness.models[-1] = msgspec.structs.replace(
            harness.models[-1], model_id=f"m{number}", cost_per_input_token=price, cost_per_output_token=price
        )
    harness.routing_policies = policies
    return harness


async def ask(harness: EngineHarness, model: str = "auto", **more: Any) -> Answer:
    return await harness.engine.answer(harness.request({"model": model, "messages": HI, **more}))


def tried(harness: EngineHarness) -> list[str]:
    """Return the hosts of the providers that were called."""
    return [request.url.split("/")[2].removesuffix(".test") for request in harness.outbound.sent]


def error(answer: Answer) -> dict[str, Any]:
    error_body: dict[str, Any] = json.loads(answer.body)["error"]
    return error_body


def failing(harness: EngineHarness, times: int) -> None:
    harness.outbound.script = [*[(503, [b"{}"])] * times, (200, [completion()])]


async def test_auto_falls_back_along_the_ranking() -> None:
    harness = engine(record())
    failing(harness, 2)
    answer = await ask(harness)
    assert tried(harness) == ["one", "two", "three"]
    assert (answer.headers["X-Gateway-Model"], answer.headers["X-Gateway-Fallbacks"]) == ("m3", "2")


async def test_auto_falls_back_along_the_chain_if_there_is_one() -> None:
    harness = engine(record("cost_optimized", "five/m5", "four/m4"))
    failing(harness, 2)
    await ask(harness)
    assert tried(harness) == ["one", "five", "four"]


async def test_the_requests_own_fallbacks_come_before_the_chain() -> None:
    harness = engine(record("cost_optimized", "five/m5"))
    failing(harness, 3)
    await ask(harness, "three/m3", fallbacks=["four/m4", "auto"])
    assert tried(harness) == ["three", "four", "one", "five"]


async def test_a_stream_is_routed_as_any_request() -> None:
    harness = engine(record())
    harness.outbound.script = [(503, [b"{}"]), (200, events("Hi"))]
    answer = await ask(harness, stream=True)
    assert answer.stream is not None
    async for _ in answer.stream:
        pass
    assert tried(harness) == ["one", "two"]
    assert [entry.routing_policy_id for entry in harness.entries] == [str(POLICY)] * 2  # type: ignore[union-attr]


async def test_the_outcome_names_the_policy_for_a_named_model_too() -> None:
    harness = engine(record())
    harness.outbound.script = [(200, [completion()])]
    await ask(harness, "five/m5")
    assert harness.outcomes[0].routing_policy_id == str(POLICY)


async def test_without_a_policy_no_policy_is_named() -> None:
    harness = engine()
    harness.outbound.script = [(200, [completion()])]
    await ask(harness, "five/m5")
    assert harness.outcomes[0].routing_policy_id is None


async def test_the_policy_is_recorded_if_a_fault_prevents_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = engine(record())

    def medians(**_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(harness.ports.latencies, "medians", medians)
    answer = await ask(harness)
    (outcome,) = harness.outcomes
    assert (answer.status, outcome.status, outcome.outcome, outcome.error_code) == (500, 500, "error", "internal_error")
    assert outcome.routing_policy_id == str(POLICY)


async def test_unhealthy_providers_are_the_last_resort() -> None:
    harness = engine(record())
    harness.unhealthy = {"one", "two"}
    failing(harness, 3)
    await ask(harness)
    assert tried(harness) == ["three", "four", "five", "one"]


async def test_a_model_with_an_open_circuit_is_not_chosen() -> None:
    harness = engine(record())
    for _ in range(CIRCUIT_FAILURES):
        failing(harness, 1)
        await ask(harness)
    harness.outbound.sent.clear()
    harness.outbound.script = [(200, [completion()])]
    answer = await ask(harness)
    assert (tried(harness), answer.headers["X-Gateway-Fallbacks"]) == (["two"], "0")


async def test_models_of_a_provider_with_an_open_circuit_do_not_fill_the_chain() -> None:
    harness = engine(record())
    harness.serve("cheap", *(f"c{number}" for number in range(20)))
    harness.models[-20:] = [
        msgspec.structs.replace(model, cost_per_input_token=Decimal(0), cost_per_output_token=Decimal(0))
        for model in harness.models[-20:]
    ]
    harness.unhealthy = {"cheap"}
    harness.outbound.script = [(200, [completion()])]
    await ask(harness)
    assert tried(harness) == ["one"]


async def test_a_switched_off_model_is_skipped() -> None:
    harness = engine(record("manual_fallback", "three/m3", "two/m2"))
    harness.off = {"m3"}
    harness.outbound.script = [(200, [completion()])]
    await ask(harness)
    assert tried(harness) == ["two"]


async def test_the_answer_is_503_if_all_models_are_switched_off() -> None:
    harness = engine(record("manual_fallback", "three/m3", "two/m2"))
    harness.off = {"m3", "m2"}
    answer = await ask(harness)
    assert (answer.status, error(answer)["type"]) == (503, "provider_unavailable")


async def test_rules_judge_every_choice() -> None:
    harness = engine(record())
    rule = PolicyRuleRecord(
        id=new_id(), name="r", priority=1, condition='provider in ["one", "two"]', action="BLOCK"
    )  # fmt: skip
    harness.governance = GovernanceRecords(policy_rules=(rule,))
    harness.outbound.script = [(200, [completion()])]
    await ask(harness)
    assert tried(harness) == ["three"]


@pytest.mark.parametrize(
    ("cap", "model", "status"),
    [
        # An answer is expected to have 500 tokens, and the request has about 15.
        ("0.000520", "auto", 200),
        ("0.000510", "auto", 402),
        ("0.002600", "five/m5", 200),
        ("0.002500", "five/m5", 402),
    ],
)
async def test_a_cap_refuses_a_call_with_a_higher_estimate(cap: str, model: str, status: int) -> None:
    harness = engine(record(cap=cap))
    harness.outbound.script = [(200, [completion()])]
    answer = await ask(harness, model)
    assert answer.status == status
    assert len(harness.outbound.sent) == (status == 200)
    assert harness.outcomes[0].error_code == (None if status == 200 else "cost_cap_exceeded")


@pytest.mark.parametrize(("answers", "status"), [(4, 200), (6, 402)])
async def test_each_of_many_answers_may_be_as_long_as_the_models_longest(answers: int, status: int) -> None:
    harness = engine(record(cap="0.000550"))
    harness.models = [msgspec.structs.replace(model, max_output_tokens=100) for model in harness.models]
    harness.outbound.script = [(200, [completion()])]
    assert (await ask(harness, "one/m1", n=answers, max_tokens=100_000)).status == status


@pytest.mark.parametrize("field", ["n", "max_tokens"])
@pytest.mark.parametrize("strategy", ["cost_optimized", "balanced"])
async def test_an_extremely_large_number_causes_no_server_error(field: str, strategy: str) -> None:
    harness = engine(record(strategy, cap="1"))
    answer = await ask(harness, **{field: 10**400})
    assert (answer.status, error(answer)["code"]) == (402, "cost_cap_exceeded")
    harness.routing_policies = (record(strategy),)
    harness.outbound.script = [(200, [completion()])]
    assert (await ask(harness, **{field: 10**400})).status == 200


async def test_fallbacks_above_the_cap_leave_the_chain() -> None:
    harness = engine(record(cap="0.0012"))
    failing(harness, 2)
    answer = await ask(harness)
    assert (answer.status, tried(harness)) == (502, ["one", "two"])


async def test_the_action_warn_passes_the_call_and_records_it() -> None:
    harness = engine(record(cap="0.000001", action="warn"))
    harness.outbound.script = [(200, [completion()])]
    await ask(harness, "five/m5")
    (event,) = harness.outcomes[0].rule_events
    assert (event.kind, event.action, event.model) == ("cost_cap", "warn", "five/m5")


async def test_the_cheapest_model_replaces_a_named_model_above_the_cap() -> None:
    harness = engine(record(cap="0.0012", action="use_cheapest"))
    failing(harness, 2)
    answer = await ask(harness, "five/m5")
    assert (answer.status, tried(harness)) == (502, ["one", "two"])
    assert [event.action for event in harness.outcomes[0].rule_events] == ["use_cheapest"]


async def test_the_replacing_model_is_capable_of_the_request() -> None:
    harness = engine(record(cap="0.0012", action="use_cheapest"))
    harness.models[0] = msgspec.structs.replace(harness.models[0], context_window=10)
    harness.outbound.script = [(200, [completion()])]
    await ask(harness, "five/m5")
    assert tried(harness) == ["two"]


async def test_a_model_without_a_price_is_refused_under_a_cap() -> None:
    harness = engine(record(cap="1"))
    harness.models[0] = msgspec.structs.replace(harness.models[0], cost_per_input_token=None)
    answer = await ask(harness, "one/m1")
    assert (answer.status, error(answer)["code"]) == (400, "price_unknown")


@pytest.mark.parametrize("between", [{"model": "five/m5"}, {"stream": True}])
async def test_requests_of_other_kinds_do_not_advance_the_round_robin(between: dict[str, Any]) -> None:
    harness = engine(record("round_robin", model_filters=ModelFilters(excluded_models=frozenset({"m3", "m4", "m5"}))))
    seen = []
    for _ in range(4):
        harness.outbound.script = [(200, events("Hi")) if "stream" in between else (200, [completion()])]
        other = await ask(harness, **between)
        if other.stream is not None:
            async for _ in other.stream:
                pass
        harness.outbound.script = [(200, [completion()])]
        seen.append((await ask(harness)).headers["X-Gateway-Model"])
    assert sorted(seen[:2]) == ["m1", "m2"]
    assert seen[2:] == seen[:2]


async def test_an_unknown_latency_is_measured_by_one_request() -> None:
    harness = engine(record("latency_optimized"))
    for number, milliseconds in ((0, 300.0), (1, 100.0), (2, 200.0), (3, 400.0)):
        harness.ports.latencies.answered(harness.models[number].id, milliseconds, stream=False)
    harness.outbound.script = [(503, [b"{}"]), (200, [completion()]), (200, [completion()])]
    assert [(await ask(harness)).headers["X-Gateway-Model"] for _ in range(2)] == ["m2", "m2"]
    assert tried(harness) == ["five", "two", "two"]


async def test_a_measured_latency_counts_from_the_next_request_on() -> None:
    harness = engine(record("balanced"))
    first, second = harness.models[:2]
    for model in harness.models:
        harness.ports.latencies.answered(model.id, 1_000.0 if model is first else 400.0, stream=False)
    seen = []
    for slow in (None, second, None):
        if slow is not None:
            for _ in range(3):
                harness.ports.latencies.answered(slow.id, 20_000.0, stream=False)
            harness.ports.latencies.report()
            harness.ports.latencies.settle()
        harness.outbound.script = [(200, [completion()])]
        seen.append((await ask(harness)).headers["X-Gateway-Model"])
    assert seen == ["m2", "m1", "m1"]


async def test_the_latency_of_an_answer_is_counted() -> None:
    harness = engine(record("latency_optimized"))
    harness.outbound.script = [(200, [completion()])] * 2
    for _ in range(2):
        await ask(harness, "two/m2")
    assert set(harness.ports.latencies.medians(stream=False)) == {harness.models[1].id.int}
    assert harness.ports.latencies.medians(stream=True) == {}


async def test_above_the_latency_budget_a_model_comes_last() -> None:
    harness = engine(record(latency_budget_ms=500))
    harness.ports.latencies.answered(harness.models[0].id, 501.0, stream=False)
    harness.outbound.script = [(200, [completion()])]
    await ask(harness)
    assert tried(harness) == ["two"]


async def test_an_unknown_name_is_404_even_with_a_fallback_chain() -> None:
    harness = engine(record("cost_optimized", "five/m5"))
    answer = await ask(harness, "five/m6")
    assert (answer.status, error(answer)["code"]) == (404, "model_not_found")


async def test_the_error_of_auto_without_a_capable_model_names_the_needs() -> None:
    harness = engine(record())
    harness.models = [msgspec.structs.replace(model, capabilities={"vision": False}) for model in harness.models]
    image = {"type": "image_url", "image_url": {"url": "https://pictures.test/1.png"}}
    answer = await ask(harness, messages=[{"role": "user", "content": [image]}])
    assert (answer.status, error(answer)["code"]) == (400, "no_capable_model")
    assert "vision" in error(answer)["message"]
