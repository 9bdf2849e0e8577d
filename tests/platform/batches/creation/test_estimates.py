"""The likely amounts of a batch's calls (docs/batches.md)."""

from decimal import Decimal

import msgspec
import pytest
from tests.engine.routing.deployments.aliases import alias_record
from tests.support.engine import TENANT, EngineHarness

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.exchange import Identified
from gatehouse.platform.batches.creation.estimates import estimate_call


@pytest.mark.parametrize("model", ["two/m", "fast"])
async def test_a_call_of_an_alias_costs_as_much_as_at_its_most_expensive_deployment(model: str) -> None:
    harness = EngineHarness()
    for name in ("one", "two", "shadow"):
        harness.serve(name, "m")
    prices = (Decimal("0.000001"), Decimal("0.00001"), Decimal(1))
    harness.models = [
        msgspec.structs.replace(record, cost_per_output_token=price)
        for record, price in zip(harness.models, prices, strict=True)
    ]
    harness.model_aliases = (
        alias_record("fast", {"provider": "one"}, {"provider": "two"}, {"provider": "shadow", "role": "shadow"}),
    )
    assert harness.caller is not None
    identified = Identified(
        received=harness.request({}),
        caller=harness.caller,
        policy=await harness.current(TENANT),
        scope="chat:write",
    )
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1_000}
    amounts = estimate_call(identified, ModelCall(dialect="openai_chat", model=model, stream=False, body=body))
    # 1,000 tokens of output, and a few of input.
    assert 10_000_000 < amounts.nano_usd < 10_100_000
