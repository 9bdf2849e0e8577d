"""Model access through the whole engine: every candidate is judged, wherever it comes from."""

import json
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.support.engine import TENANT, USER, EngineHarness, completion

from gatehouse.engine.exchange import Answer
from gatehouse.engine.usable_models import usable_models
from gatehouse.foundation.identity import Caller, CallerKind
from gatehouse.policy.governance import GovernanceRecords, PolicyRuleRecord
from gatehouse.policy.model_access import AccessType, ModelAccessRecord

GROUP, OTHER = UUID(int=1), UUID(int=2)


def caller(*groups: UUID) -> Caller:
    return Caller(
        kind=CallerKind.API_KEY, tenant_id=TENANT, user_id=USER, groups=groups, rate_key=f"user:{USER}",
        api_key_id=UUID(int=7),
    )  # fmt: skip


def engine(*rules: tuple[UUID, AccessType, str], groups: tuple[UUID, ...] = (GROUP,), **access: str) -> EngineHarness:
    """Create an engine whose providers `one`, `two` and `three` have a model `m` each. `access` is the catalog's field,
    by provider."""
    harness = EngineHarness()
    for provider in ("one", "two", "three"):
        harness.serve(provider, "m")
    harness.models = [
        msgspec.structs.replace(model, access=access.get(model.provider, "open"), is_default=model.provider == "one")
        for model in harness.models
    ]
    harness.caller = caller(*groups)
    harness.model_access = tuple(
        ModelAccessRecord(group_id=group, model=model, access_type=access_type) for group, access_type, model in rules
    )
    return harness


def governed(harness: EngineHarness, action: str, condition: str, **more: Any) -> None:
    fields = {"id": str(UUID(int=9)), "name": "rule", "priority": 1, "condition": condition, "action": action, **more}
    harness.governance = GovernanceRecords(policy_rules=(msgspec.convert(fields, PolicyRuleRecord),))


async def ask(harness: EngineHarness, model: str, *fallbacks: str) -> tuple[Answer, dict[str, Any]]:
    if not harness.outbound.script:
        harness.outbound.script = [(200, [completion()])]
    body = {"model": model, "fallbacks": list(fallbacks), "messages": [{"role": "user", "content": "hi"}]}
    answer = await harness.engine.answer(harness.request(body))
    return answer, json.loads(answer.body)


def hosts(harness: EngineHarness) -> list[str]:
    return [request.url.split("/")[2].split(".")[0] for request in harness.outbound.sent]


@pytest.mark.parametrize("model", ["one/m", "auto"])
async def test_a_denied_model_gets_the_answer_of_an_unknown_one(model: str) -> None:
    harness = engine((GROUP, "DENY", "one/m"))
    answer, body = await ask(harness, model)
    unknown = await ask(engine(), "nobody/m")
    assert (answer.status, hosts(harness)) == (unknown[0].status, []) == (404, [])
    assert body["error"] == {
        **unknown[1]["error"],
        "message": unknown[1]["error"]["message"].replace("nobody/m", model),
    }


async def test_the_refusal_of_a_bare_name_does_not_disclose_the_provider() -> None:
    harness = engine((GROUP, "DENY", "one/only-here"))
    harness.serve("one", "only-here")
    _, body = await ask(harness, "only-here")
    assert body["error"]["message"].startswith("The model 'only-here' does not exist")


async def test_the_denial_of_any_group_wins() -> None:
    harness = engine((GROUP, "ALLOW", "one/m"), (OTHER, "DENY", "one/m"), groups=(GROUP, OTHER))
    assert (await ask(harness, "one/m"))[0].status == 404


async def test_rules_of_other_groups_do_not_apply() -> None:
    harness = engine((OTHER, "DENY", "one/m"))
    assert (await ask(harness, "one/m"))[0].status == 200


@pytest.mark.parametrize(("groups", "status"), [((GROUP,), 200), ((OTHER,), 404), ((), 404)])
async def test_a_grant_opens_a_restricted_model_to_the_groups_members(groups: tuple[UUID, ...], status: int) -> None:
    harness = engine((GROUP, "ALLOW", "one/m"), groups=groups, one="restricted")
    assert (await ask(harness, "one/m"))[0].status == status


async def test_a_denied_fallback_leaves_the_chain() -> None:
    harness = engine((GROUP, "DENY", "two/m"))
    harness.outbound.script = [(500, [b"{}"]), (200, [completion()])]
    assert (await ask(harness, "one/m", "two/m", "three/m"))[0].status == 200
    assert hosts(harness) == ["one", "three"]


async def test_a_denied_first_choice_is_replaced_by_a_fallback() -> None:
    harness = engine((GROUP, "DENY", "one/m"))
    assert (await ask(harness, "one/m", "two/m"))[0].status == 200
    assert hosts(harness) == ["two"]


async def test_a_policy_rule_cannot_route_to_a_denied_model() -> None:
    harness = engine(two="restricted")
    governed(harness, "ROUTE", 'provider == "one"', route_to="two/m")
    answer, body = await ask(harness, "one/m")
    assert (answer.status, hosts(harness)) == (404, [])
    assert "two" not in body["error"]["message"]


async def test_no_approval_is_requested_for_a_denied_model() -> None:
    harness = engine((GROUP, "DENY", "one/m"))
    harness.flags = {"human_in_loop": True}
    governed(harness, "REQUIRE_APPROVAL", "true")
    assert (await ask(harness, "one/m"))[0].status == 404
    assert harness.approval_questions == []


async def test_a_denied_models_kill_switch_is_not_disclosed() -> None:
    harness = engine((GROUP, "DENY", "one/m"))
    harness.off = {"m"}
    assert (await ask(harness, "one/m"))[0].status == 404


async def test_a_machine_has_no_groups_and_no_restricted_models() -> None:
    harness = engine((GROUP, "ALLOW", "one/m"), one="restricted")
    harness.caller = Caller(
        kind=CallerKind.OAUTH_CLIENT, tenant_id=TENANT, client_id=USER, scopes=frozenset({"chat:write"}), rate_key="x"
    )
    assert (await ask(harness, "one/m"))[0].status == 404
    assert (await ask(harness, "two/m"))[0].status == 200


@pytest.mark.parametrize(
    ("groups", "usable"), [((GROUP,), ["one", "three"]), ((OTHER,), ["two", "three"]), ((), ["two", "three"])]
)
async def test_the_list_of_models_contains_the_models_that_the_caller_may_use(
    groups: tuple[UUID, ...], usable: list[str]
) -> None:
    harness = engine((GROUP, "ALLOW", "one/m"), (GROUP, "DENY", "two/m"), groups=groups, one="restricted")
    caller = await harness.engine.identify(harness.request(b""), "api:read")
    assert [model.provider for model in usable_models(caller.identified, harness.engine.ports)] == usable
