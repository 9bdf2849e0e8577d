"""The signed bundle of an outpost, and the checks with which the outpost accepts it."""

import sys
from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatehouse.foundation import jwt
from gatehouse.foundation.identity import TenantId
from gatehouse.policy.budgets import BudgetRecord
from gatehouse.policy.bundles import contents, signing
from gatehouse.policy.bundles.contents import (
    CallerRecords,
    ClientRecord,
    KeyRecord,
    PolicyBundle,
    UserRecord,
)
from gatehouse.policy.bundles.signing import BundleRefused
from gatehouse.policy.catalog import (
    ChainEntry,
    CostCap,
    ModelFilters,
    ModelRecord,
    ProviderRecord,
    RoutingPolicyRecord,
    TenantRecords,
)
from gatehouse.policy.compile import compile_policy
from gatehouse.policy.governance import GovernanceRecords, PolicyRuleRecord
from gatehouse.policy.model_access import ModelAccessRecord
from gatehouse.policy.snapshot import Snapshot

TENANT, OUTPOST = TenantId(UUID(int=9)), UUID(int=5)
KEY, OTHER_KEY = jwt.SigningKey.generate(), jwt.SigningKey.generate()
KEYS = {KEY.kid: KEY}

IDS = st.sampled_from([UUID(int=number) for number in range(1, 5)])
NAMES = st.text(min_size=1, max_size=12)
MONEY = st.none() | st.decimals(0, 1, places=12)
PROVIDERS = st.sampled_from(["one", "two", "drei/ß"])
MODELS = st.lists(
    st.builds(
        ModelRecord, id=st.uuids(), provider=PROVIDERS, model_id=NAMES, is_active=st.booleans(),
        access=st.sampled_from(["open", "restricted"]), cost_per_input_token=MONEY, cost_per_output_token=MONEY,
        capabilities=st.dictionaries(st.sampled_from(["vision", "tool_use"]), st.booleans()),
        created_at=st.floats(0, 2e9),
    ),
    max_size=4,
).map(tuple)  # fmt: skip
ROUTING = st.lists(
    st.builds(
        RoutingPolicyRecord, id=st.uuids(), name=NAMES,
        strategy=st.sampled_from(["balanced", "manual_fallback", "round_robin"]), group_ids=st.lists(IDS).map(tuple),
        model_filters=st.builds(
            ModelFilters, excluded_models=st.frozensets(NAMES), included_providers=st.frozensets(PROVIDERS)
        ),
        fallback_chain=st.lists(st.builds(ChainEntry, provider=PROVIDERS, model_id=NAMES), max_size=2).map(tuple),
        cost_cap=st.none() | st.builds(
            CostCap, max_cost_per_request_usd=st.decimals("0.01", 9, places=4),
            action_on_exceed=st.sampled_from(["block", "warn"]),
        ),
    ),
    max_size=2,
).map(tuple)  # fmt: skip
RECORDS = st.builds(
    TenantRecords, tenant_id=st.just(TENANT), revision=st.integers(1, 2**50), models=MODELS,
    providers=st.lists(
        st.builds(ProviderRecord, id=PROVIDERS, name=NAMES, kind=st.just("sandbox")), max_size=2
    ).map(tuple),
    allowed_fields=st.lists(st.sampled_from(["models", "tools.mcp", "service_tier"]), max_size=2).map(tuple),
    feature_flags=st.dictionaries(st.sampled_from(["dlp_enabled", "cost_routing", "human_in_loop"]), st.booleans()),
    governance=st.builds(
        GovernanceRecords, suppressions=st.frozensets(st.sampled_from(["credit-card", "email", "ssn"])),
        overrides=st.dictionaries(IDS, st.dictionaries(st.sampled_from(["email", "ssn"]), st.just("BLOCK"))),
        policy_rules=st.lists(
            st.builds(
                PolicyRuleRecord, id=st.uuids(), name=NAMES, priority=st.integers(0, 9),
                condition=st.just("model == 'one/m'"), action=st.just("BLOCK"),
            ),
            max_size=2,
        ).map(tuple),
    ),
    model_access=st.lists(
        st.builds(ModelAccessRecord, group_id=IDS, model=NAMES, access_type=st.sampled_from(["ALLOW", "DENY"]))
    ).map(tuple),
    ip_allowlist=st.none() | st.just(("10.0.0.0/8", "::1/128")),
    timezone=st.sampled_from(["UTC", "Europe/Berlin"]),
    budgets=st.lists(
        st.builds(
            BudgetRecord, id=st.uuids(), scope_type=st.just("group"), scope_id=IDS, period=st.just("month"),
            limit_usd=st.none() | st.decimals("0.01", 99, places=2), limit_requests=st.integers(1, 9),
        ),
        max_size=2,
    ).map(tuple),
    routing_policies=ROUTING,
)  # fmt: skip
CALLERS = CallerRecords(
    custom_rate_limit_rpm=7,
    users=(UserRecord(id=UUID(int=1), email="a@example.test", role="user", groups=(UUID(int=2),)),),
    keys=(KeyRecord(id=UUID(int=3), user_id=UUID(int=1), digest=b"\x00\xff" * 16, scopes=("api:read",)),),
    clients=(ClientRecord(client_id=UUID(int=4), scopes=("chat:write",)),),
)


def document(records: TenantRecords, **more: Any) -> bytes:
    bundle_contents = contents.contents(records, msgspec.json.encode(CALLERS), frozenset({UUID(int=8)}))
    sent = {"outpost_id": OUTPOST, "tenant_id": TENANT, "issued_at": 100, "expires_at": 200, **more}
    return contents.encode(bundle_contents, **sent)


def records(revision: int = 4, **more: Any) -> TenantRecords:
    return TenantRecords(tenant_id=TENANT, revision=revision, **more)


@given(RECORDS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_received_bundle_compiles_to_the_same_snapshot(sent: TenantRecords) -> None:
    arrived = contents.decode(document(sent))
    assert arrived.policy == sent
    assert (arrived.callers, arrived.switched_off) == (CALLERS, {UUID(int=8)})
    here, there = compile_policy(sent), compile_policy(arrived.policy)
    if isinstance(here, list):
        assert there == here
        return
    assert isinstance(there, Snapshot)
    # `test_contents` compares the decisions of these parts.
    for part in set(Snapshot.__struct_fields__) - {"dlp", "filters", "rules"}:
        assert shape(getattr(here, part)) == shape(getattr(there, part)), part


def shape(value: object) -> object:
    """Return the content of our own types as plain values, so that two can be compared."""
    if isinstance(value, Mapping):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shape(item) for item in value]
    names = getattr(value, "__slots__", None) or vars(value).keys() if type(value).__module__ in OURS else ()
    return (type(value), {name: shape(getattr(value, name)) for name in names}) if names else value


OURS = {name for name in sys.modules if name.startswith("gatehouse.policy")}


@given(RECORDS)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_same_records_are_the_same_bytes(sent: TenantRecords) -> None:
    again = msgspec.json.decode(msgspec.json.encode(sent), type=TenantRecords)
    assert document(again) == document(sent)


def test_the_digest_changes_only_with_the_content() -> None:
    def digest(sent: TenantRecords, callers: CallerRecords = CALLERS, off: frozenset[UUID] = frozenset()) -> bytes:
        return contents.contents(sent, msgspec.json.encode(callers), off).digest

    first = digest(records(4))
    assert digest(records(5)) == first
    assert digest(records(4, timezone="Europe/Berlin")) != first
    assert digest(records(4), CallerRecords()) != first
    assert digest(records(4), off=frozenset({UUID(int=1)})) != first


def test_credentials_of_providers_are_not_in_it() -> None:
    provider = ProviderRecord(id="one", name="One", kind="openai", sealed_credentials="sealed-by-the-platform")
    sent = document(records(providers=(provider,)))
    assert b"sealed-by-the-platform" not in sent
    assert contents.decode(sent).policy.providers[0].sealed_credentials is None


def test_unknown_fields_are_ignored_and_missing_fields_have_their_default() -> None:
    sent = msgspec.json.decode(document(records()))
    sent["from_the_future"] = sent["policy"]["from_the_future"] = [1]
    del sent["callers"], sent["switched_off"], sent["policy"]["timezone"]
    arrived = contents.decode(msgspec.json.encode(sent))
    assert (arrived.callers, arrived.switched_off, arrived.policy) == (CallerRecords(), frozenset(), records())


def verified(signed: str, **more: Any) -> PolicyBundle:
    return signing.verify(signed, KEYS, outpost_id=OUTPOST, **more)


def test_a_bundle_is_accepted_by_its_own_outpost() -> None:
    arrived = verified(signing.sign(document(records(4)), KEY), in_force=4, now=150)
    assert (arrived.version, arrived.tenant_id, arrived.policy) == (4, TENANT, records(4))


def test_a_stored_bundle_is_accepted_after_its_expiry() -> None:
    signed = signing.sign(document(records()), KEY)
    assert verified(signed).version == 4
    with pytest.raises(BundleRefused, match="expired"):
        verified(signed, now=200)


def _changed(signed: str) -> str:
    head, body, signature = signed.split(".")
    return f"{head}.{body[:-9]}{'A' if body[-9] != 'A' else 'B'}{body[-8:]}.{signature}"


@pytest.mark.parametrize(
    ("signed", "reason"),
    [
        (signing.sign(document(records()), OTHER_KEY), "signature"),
        (_changed(signing.sign(document(records()), KEY)), "signature"),
        (signing.sign(document(records()), KEY)[:-20], "signature"),
        (signing.sign(document(records()), KEY)[:400], "signature"),
        ("", "signature"),
        (jwt.sign_document(document(records()), KEY, kind="something else"), "signature"),
        (jwt.sign({"iss": "x"}, KEY), "signature"),
        (signing.sign(document(records(), outpost_id=uuid4()), KEY), "outpost"),
        (signing.sign(document(records(), tenant_id=TenantId(uuid4())), KEY), "organization"),
        (signing.sign(document(records(3)), KEY), "older"),
        (signing.sign(document(records()).replace(contents.KIND.encode(), b"gatehouse/policy-bundle/2"), KEY), "kind"),
        (signing.sign(document(records())[:-9], KEY), "read"),
        (signing.sign(b"[]", KEY), "read"),
        (signing.sign(b'{"kind": "gatehouse/policy-bundle/1"}', KEY), "read"),
    ],
)  # fmt: skip
def test_an_invalid_bundle_is_refused_with_the_reason(signed: str, reason: str) -> None:
    with pytest.raises(BundleRefused, match=reason):
        verified(signed, in_force=4, now=150)


def test_a_bundle_is_not_accepted_as_a_token() -> None:
    with pytest.raises(jwt.InvalidToken):
        jwt.verify(signing.sign(document(records()), KEY), KEYS, issuer="x", audience="x")
