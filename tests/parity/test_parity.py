"""The same bundle and the same request give the same verdict on the platform and on an outpost. The test uses the ports
of both hosts, two engines, and random policies and texts."""

import asyncio
import json
import re
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.engine import EngineHarness, completion, events

from gatehouse.detection.taxonomy import TAXONOMY
from gatehouse.engine.exchange import Answer, Received
from gatehouse.engine.measures.latency import Latencies
from gatehouse.engine.ports import Ports
from gatehouse.engine.run import Engine
from gatehouse.foundation.identity import Role, TenantId
from gatehouse.foundation.jwt import SigningKey, key_set
from gatehouse.foundation.secrets import tokens
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.outpost.host import OutpostHost
from gatehouse.outpost.settings import OutpostSettings
from gatehouse.platform.live.credentials import LiveCredentials
from gatehouse.platform.live.ports import LiveSwitches, SealedSecrets
from gatehouse.platform.live.replica.state import (
    LiveKey,
    LiveTenant,
    LiveUser,
    Replica,
)
from gatehouse.policy.bundles import contents, signing
from gatehouse.policy.bundles.contents import CallerRecords, KeyRecord, UserRecord
from gatehouse.policy.compile import compile_policy
from gatehouse.policy.governance import (
    BundleRecord,
    DlpRuleRecord,
    FilterRecord,
    GovernanceRecords,
    PolicyRuleRecord,
    RegistryRecord,
)
from gatehouse.policy.model_access import ModelAccessRecord
from gatehouse.policy.records import (
    ChainEntry,
    CostCap,
    ModelRecord,
    ProviderConfig,
    ProviderRecord,
    RoutingPolicyRecord,
    TenantRecords,
)
from gatehouse.policy.snapshot import Snapshot

TENANT, OUTPOST = TenantId(UUID(int=11)), UUID(int=12)
USER, KEY_ID = UUID(int=13), UUID(int=14)
KEY = "gk_" + "k" * 40
GROUPS = [UUID(int=number) for number in (1, 2, 3)]
SIGNER = SigningKey.generate()

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
    model=st.sampled_from([*NAMES, "auto", "large", "unknown/model"]),
    fallbacks=st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(tuple),
    prompt=TEXTS,
    answer=TEXTS,
    stream=st.booleans(),
    status=st.sampled_from([200, 200, 200, 429]),
    more=st.sampled_from([{}, {}, {"models": ["x"]}, {"service_tier": "priority"}, {"tools": [{"type": "mcp"}]}]),
)


class InTouch:
    """A change feed that is up to date."""

    async def before_attempt(self) -> None: ...

    def current(self) -> bool:
        return True


class Compiled:
    def __init__(self, records: TenantRecords) -> None:
        compiled = compile_policy(records)
        assert isinstance(compiled, Snapshot)
        self._snapshot = compiled

    async def current(self, tenant_id: TenantId) -> Snapshot:
        return self._snapshot


def platform_ports(case: Case, base: Ports) -> Ports:
    """Return the platform's ports, with state as if it had been read from the database."""
    replica = Replica()
    replica.tenants[TENANT] = LiveTenant(TENANT, active=True, custom_rate_limit_rpm=None)
    replica.users[USER] = LiveUser(
        USER, TENANT, "ada@example.com", Role.USER, operator=False, active=True, groups=case.groups
    )
    replica.put_key(tokens.digest(KEY), LiveKey(KEY_ID, USER, enabled=True, expires_at=None, scopes=None))
    replica.switched_off = set(case.switched_off)
    ports = msgspec.structs.replace(base)
    ports.credentials = LiveCredentials(replica, issuer="gatehouse", enforce_scopes=True)
    ports.policies = Compiled(case.records)
    ports.switches = LiveSwitches(replica, InTouch())  # type: ignore[arg-type]
    ports.secrets = SealedSecrets(Sealer({"k": bytes(32)}, "k"))
    return ports


def bundle(case: Case) -> str:
    """Return the signed bundle that the platform would send."""
    callers = CallerRecords(
        users=(UserRecord(id=USER, email="ada@example.com", role="user", groups=case.groups),),
        keys=(KeyRecord(id=KEY_ID, user_id=USER, digest=tokens.digest(KEY)),),
    )
    bundle_contents = contents.contents(case.records, msgspec.json.encode(callers), case.switched_off)
    now = int(time.time())
    return signing.sign(
        contents.encode(bundle_contents, outpost_id=OUTPOST, tenant_id=TENANT, issued_at=now, expires_at=now + 60),
        SIGNER,
    )


async def outpost_ports(case: Case, base: Ports) -> AsyncIterator[Ports]:
    """Return the outpost's ports, which get the signed bundle. Ports that both hosts share are taken from `base`."""
    with tempfile.TemporaryDirectory() as home:
        read = OutpostSettings(
            gatehouse_home=Path(home), outpost_id=OUTPOST, outpost_airgap=True, outpost_bundle_path=Path(home) / "b",
            outpost_keys_path=Path(home) / "k",
        )  # fmt: skip
        host = OutpostHost(read)
        host.bundles.trust(key_set([SIGNER])["keys"], keep=False)
        assert await host.bundles.take(bundle(case), "file"), host.bundles.status.fault
        own = host.ports
        yield msgspec.structs.replace(
            base, credentials=own.credentials, policies=own.policies, switches=own.switches, secrets=own.secrets,
            limits=own.limits, counters=own.counters, spend=own.spend,
        )  # fmt: skip
        await host.outbound.close()
        await host.journal.close()


async def verdict(ports: Ports, harness: EngineHarness, case: Case) -> dict[str, Any]:
    """Return what the client and the provider receive and what is recorded, without values that differ for each
    call."""
    pieces: list[bytes | Exception] = (
        events(*re.findall(r".{1,7}", case.answer)) if case.stream else [completion(case.answer)]
    )
    refusal: tuple[int, list[bytes | Exception]] = (case.status, [b'{"error": {"message": "busy"}}'])
    harness.outbound.script = [refusal if case.status != 200 and not n else (200, list(pieces)) for n in range(6)]
    harness.outbound.sent, harness.entries = [], []
    requested = {"model": case.model, "messages": [{"role": "user", "content": case.prompt}], "stream": case.stream}
    requested |= case.more
    if case.fallbacks:
        requested["fallbacks"] = list(case.fallbacks)
    received = Received(
        request_id="r", method="POST", path="/v1/chat/completions", headers={"authorization": f"Bearer {KEY}"},
        client_address="192.0.2.1", received_at=harness.clock.now(), started=harness.clock.monotonic(),
        dialect="openai_chat", body=json.dumps(requested).encode(),
    )  # fmt: skip
    # Measurements of the other host's call do not belong to the policy.
    answer = await Engine(msgspec.structs.replace(ports, latencies=Latencies(harness.clock))).answer(received)
    body = await _whole(answer)
    return {
        "status": answer.status,
        "headers": _kept(answer.headers),
        "body": _without_ids(body),
        "sent": [(request.url, request.body) for request in harness.outbound.sent],
        "outcomes": [_plain(outcome) for outcome in harness.outcomes],
    }


async def _whole(answer: Answer) -> bytes:
    if answer.stream is None:
        return answer.body
    return b"".join([block async for block in answer.stream])


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    # Each host has its own limits and budgets, which do not belong to the verdict.
    return {name: value for name, value in headers.items() if not name.startswith(("X-RateLimit-", "X-Budget-"))}


def _without_ids(body: bytes) -> bytes:
    return re.sub(rb'"(id|created)": ?("[^"]*"|\d+)', b"", body)


def _plain(entry: Any) -> dict[str, Any]:
    result: dict[str, Any] = msgspec.structs.asdict(entry)
    for name in ("id", "latency_ms", "provider_latency_ms", "time_to_first_token_ms", "timestamp"):
        del result[name]
    return result


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=CASES)
def test_both_hosts_give_the_same_verdict(case: Case) -> None:
    async def both() -> None:
        harness = EngineHarness()
        base = harness.ports
        on_platform = await verdict(platform_ports(case, base), harness, case)
        async for ports in outpost_ports(case, base):
            assert await verdict(ports, harness, case) == on_platform

    asyncio.run(both())
