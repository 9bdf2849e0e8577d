"""The same bundle and the same request give the same verdict on the platform and on an outpost. The test uses the ports
of both hosts, two engines, and random policies and texts."""

import asyncio
import json
import re
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.parity.hosts import TENANT, State, host_engine, outpost_ports, platform_ports, results
from tests.support.engine import EngineHarness, completion, events

from gatehouse.detection.taxonomy import TAXONOMY
from gatehouse.engine.ports import Ports
from gatehouse.policy.catalog import (
    ChainEntry,
    CostCap,
    DeploymentRecord,
    ModelAliasRecord,
    ModelRecord,
    ProviderConfig,
    ProviderRecord,
    RoutingPolicyRecord,
    TenantRecords,
)
from gatehouse.policy.governance import (
    BundleRecord,
    DlpRuleRecord,
    FilterRecord,
    GovernanceRecords,
    PolicyRuleRecord,
    RegistryRecord,
)
from gatehouse.policy.model_access import ModelAccessRecord

GROUPS = [UUID(int=number) for number in (1, 2, 3)]

MODELS = tuple(
    ModelRecord(
        id=UUID(int=100 + number), provider=provider, model_id=model, is_default=number == 0, access=access,
        cost_per_input_token=Decimal(number + 1) / 1_000_000,
        cost_per_output_token=Decimal(number + 2) / 1_000_000,
        context_window=100_000, max_output_tokens=1_000,
    )
    for number, (provider, model, access) in enumerate(
        [("one", "small", "open"), ("one", "large", "open"), ("two", "small", "restricted"), ("two", "odd", "open")]
    )
)  # fmt: skip
NAMES = [f"{model.provider}/{model.model_id}" for model in MODELS]

ACTIONS = st.sampled_from(["log_only", "redact", "prompt", "block"])
ENTITIES = st.sampled_from(TAXONOMY)
SEVERAL = {"max_size": 3}
GOVERNANCE = st.builds(
    GovernanceRecords,
    dlp_rules=st.lists(
        st.builds(
            DlpRuleRecord, id=st.uuids().map(str), name=st.text(min_size=1, max_size=9), detector_type=st.just("regex"),
            entity_type=ENTITIES, action=ACTIONS, threshold=st.sampled_from([0.0, 0.5, 0.9]),
            pattern=st.sampled_from([None, r"PRJ-\d{4}", r"[a-f]{3,8}", r"(?i)secret \w{1,9}"]),
            reversible=st.booleans(),
        ),
        **SEVERAL,
    ).map(tuple),
    suppressions=st.frozensets(st.sampled_from(["credit-card", "email", "ssn"])),
    overrides=st.dictionaries(
        st.sampled_from(GROUPS), st.dictionaries(ENTITIES, st.sampled_from(["ALLOW", "REDACT", "BLOCK"]), max_size=3)
    ),
    bundles=st.lists(
        st.builds(
            BundleRecord, id=st.uuids(), name=st.just("b"), entity_types=st.lists(ENTITIES, max_size=3).map(tuple)
        ),
        max_size=2,
    ).map(tuple),
    filters=st.lists(
        st.one_of(
            st.builds(
                FilterRecord, id=st.uuids(), name=st.just("f"), filter_type=st.just("keyword_block"),
                priority=st.integers(1, 9), group_id=st.none() | st.sampled_from(GROUPS),
                keywords=st.lists(st.sampled_from(["secret", "card", "zanzibar"]), min_size=1, max_size=2).map(tuple),
            ),
            st.builds(
                FilterRecord, id=st.uuids(), name=st.just("i"), filter_type=st.just("custom_instruction"),
                priority=st.integers(1, 9), instruction=st.sampled_from(["Be brief.", "Never say PRJ-9999."]),
            ),
        ),
        **SEVERAL,
    ).map(tuple),
    policy_rules=st.lists(
        st.builds(
            PolicyRuleRecord, id=st.uuids(), name=st.just("r"), priority=st.integers(1, 9),
            condition=st.sampled_from(
                [
                    'model == "one/small"', 'provider == "two"', '"email" in dlp.entities', "tokens > 20",
                    "size(groups) > 1", 'model_risk_tier == "tier_1"', 'dlp.action == "REDACT"', 'ip == "192.0.2.1"',
                    "cost_usd > 0.001",
                ]
            ),
            action=st.sampled_from(["ALLOW", "BLOCK", "LOG", "ROUTE"]), route_to=st.sampled_from(NAMES),
            terminal=st.booleans(),
        ),
        **SEVERAL,
    ).map(tuple),
    registry=st.lists(
        st.builds(
            RegistryRecord, provider=st.sampled_from(["one", "two"]),
            model_id=st.sampled_from(["small", "large", "odd"]),
            risk_tier=st.sampled_from(["tier_1", "tier_4"]),
            validation_status=st.sampled_from(["draft", "validated", "deprecated"]),
        ),
        max_size=2, unique_by=lambda item: (item.provider, item.model_id),
    ).map(tuple),
    registry_enforcement=st.sampled_from(["off", "off", "warn", "block"]),
)  # fmt: skip
ROUTING = st.lists(
    st.builds(
        RoutingPolicyRecord, id=st.uuids(), name=st.just("p"),
        strategy=st.sampled_from(["cost_optimized", "quality_optimized", "balanced", "manual_fallback"]),
        fallback_chain=st.lists(
            st.sampled_from(MODELS).map(lambda item: ChainEntry(provider=item.provider, model_id=item.model_id)),
            max_size=3, unique_by=lambda item: (item.provider, item.model_id),
        ).map(tuple),
        cost_cap=st.none() | st.builds(
            CostCap, max_cost_per_request_usd=st.decimals("0.00001", "0.01", places=5),
            action_on_exceed=st.sampled_from(["block", "use_cheapest", "warn"]),
        ),
    ),
    max_size=1,
).map(tuple)  # fmt: skip
# The choice of a sticky alias follows from the request alone; other aliases take turns.
ALIASES = st.lists(
    st.builds(
        ModelAliasRecord, id=st.uuids(), name=st.sampled_from(["fast", "large"]), sticky=st.just(True),
        deployments=st.lists(
            st.builds(
                lambda item, weight, tier: DeploymentRecord(
                    provider=item.provider, model_id=item.model_id, weight=weight, tier=tier
                ),
                st.sampled_from(MODELS), st.integers(0, 5), st.integers(0, 2),
            ),
            min_size=1, max_size=4, unique_by=lambda item: (item.provider, item.model_id),
        ).map(tuple),
    ),
    max_size=2, unique_by=lambda item: item.name,
).map(tuple)  # fmt: skip
RECORDS = st.builds(
    TenantRecords,
    tenant_id=st.just(TENANT),
    revision=st.just(7),
    providers=st.tuples(*(
        st.builds(
            ProviderRecord, id=st.just(name), name=st.just(name), kind=st.just("openai_compatible"),
            enabled=st.sampled_from([True, True, True, False]),
            config=st.just(ProviderConfig(base_url=f"http://{name}.test/v1", max_retries=0)),
        )
        for name in ("one", "two")
    )),
    models=st.just(MODELS),
    feature_flags=st.dictionaries(
        st.sampled_from(["dlp_enabled", "credential_intelligence", "cost_routing"]), st.booleans(), max_size=2
    ),
    governance=GOVERNANCE,
    model_access=st.lists(
        st.builds(
            ModelAccessRecord, group_id=st.sampled_from(GROUPS), model=st.sampled_from([*NAMES, "small"]),
            access_type=st.sampled_from(["ALLOW", "DENY"]),
        ),
        max_size=2, unique_by=lambda item: (item.group_id, item.model),
    ).map(tuple),
    ip_allowlist=st.sampled_from([None, None, None, ("192.0.2.0/24",), ("10.0.0.0/8",)]),
    routing_policies=ROUTING,
    model_aliases=ALIASES,
    allowed_fields=st.sampled_from([(), ("models",), ("tools.*", "service_tier")]),
)  # fmt: skip
WORDS = st.sampled_from(
    ["card 4242 4242 4242 4242", "a@example.com", "PRJ-1234", "Secret thing", "abcdef", "10.0.0.1", "SSN 536-22-1234",
     "zanzibar", "AKIAIOSFODNN7EXAMPLE", "what is the weather"]
)  # fmt: skip
TEXTS = st.lists(WORDS, min_size=1, max_size=5).map(" ".join)


class Case(msgspec.Struct, frozen=True):
    records: TenantRecords
    groups: tuple[UUID, ...]
    switched_off: frozenset[UUID]
    model: str
    fallbacks: tuple[str, ...]
    prompt: str
    answer: str
    stream: bool
    #: the provider's status
    status: int
    #: further fields of the body
    more: dict[str, Any]


CASES = st.builds(
    Case,
    records=RECORDS,
    groups=st.lists(st.sampled_from(GROUPS), unique=True, max_size=3).map(tuple),
    switched_off=st.frozensets(st.sampled_from([model.id for model in MODELS]), max_size=1),
    model=st.sampled_from([*NAMES, "auto", "large", "fast", "unknown/model"]),
    fallbacks=st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(tuple),
    prompt=TEXTS,
    answer=TEXTS,
    stream=st.booleans(),
    status=st.sampled_from([200, 200, 200, 429]),
    more=st.sampled_from([{}, {}, {"models": ["x"]}, {"service_tier": "priority"}, {"tools": [{"type": "mcp"}]}]),
)


async def verdict(ports: Ports, harness: EngineHarness, case: Case) -> dict[str, Any]:
    """Return the results of the case's request on one host."""
    pieces: list[bytes | Exception] = (
        events(*re.findall(r".{1,7}", case.answer)) if case.stream else [completion(case.answer)]
    )
    refusal: tuple[int, list[bytes | Exception]] = (case.status, [b'{"error": {"message": "busy"}}'])
    harness.outbound.script = [refusal if case.status != 200 and not n else (200, list(pieces)) for n in range(6)]
    requested = {"model": case.model, "messages": [{"role": "user", "content": case.prompt}], "stream": case.stream}
    requested |= case.more
    if case.fallbacks:
        requested["fallbacks"] = list(case.fallbacks)
    return await results(host_engine(ports, harness), harness, json.dumps(requested).encode())


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=CASES)
def test_both_hosts_give_the_same_verdict(case: Case) -> None:
    async def both() -> None:
        harness = EngineHarness()
        base = harness.ports
        state = State(case.records, case.groups, case.switched_off)
        on_platform = await verdict(platform_ports(state, base), harness, case)
        async for ports in outpost_ports(state, base):
            assert await verdict(ports, harness, case) == on_platform

    asyncio.run(both())
