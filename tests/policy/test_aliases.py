"""Model aliases in the compiled policy and in an outpost's bundle."""

from time import time
from uuid import UUID

import msgspec
from tests.engine.routing.deployments.aliases import alias_record
from tests.support.engine import TENANT, EngineHarness

from gatehouse.foundation.ids import new_id
from gatehouse.policy.bundles.contents import contents, decode, encode
from gatehouse.policy.catalog import CredentialRecord, ModelAliasRecord, Overrides, TenantRecords
from gatehouse.policy.compile import compile_policy
from gatehouse.policy.snapshot import Snapshot

OUTPOST = UUID("00000000-0000-7000-8000-0000000000dd")


def records(*aliases: ModelAliasRecord, **fields: object) -> TenantRecords:
    harness = EngineHarness()
    for provider in ("one", "two"):
        harness.serve(provider, "m")
    values = {
        "tenant_id": TENANT, "revision": 1, "providers": tuple(harness.providers), "models": tuple(harness.models),
        "model_aliases": aliases, **fields,
    }  # fmt: skip
    return TenantRecords(**values)  # type: ignore[arg-type]


def compiled(tenant_records: TenantRecords) -> Snapshot:
    snapshot = compile_policy(tenant_records)
    assert isinstance(snapshot, Snapshot)
    return snapshot


def test_a_bundle_carries_the_aliases() -> None:
    alias = alias_record(
        "fast", {"provider": "one", "weight": 3, "requests_per_minute": 7}, {"provider": "two", "role": "shadow"}
    )
    bundle = decode(
        encode(
            contents(records(alias), msgspec.json.encode({}), frozenset()),
            outpost_id=OUTPOST, tenant_id=TENANT, issued_at=int(time()), expires_at=int(time()) + 60,
        )
    )  # fmt: skip
    assert bundle.policy.model_aliases == (alias,)
    snapshot_alias = compiled(bundle.policy).find_alias("fast")
    assert snapshot_alias is not None
    assert [(deployment.name, deployment.weight) for deployment in snapshot_alias.live] == [("one/m", 3)]
    assert [deployment.name for deployment in snapshot_alias.shadows] == ["two/m"]


def test_an_outpost_receives_the_labels_of_credentials_without_their_secrets() -> None:
    alias = alias_record(
        "fast", *({"provider": "one", "credential": label} for label in ("default", "second", "off", "gone"))
    )
    further = (
        CredentialRecord(label="second", sealed="sealed-second"),
        CredentialRecord(label="off", state="disabled", sealed="sealed-off"),
    )
    tenant_records = records(alias)
    providers = tuple(
        msgspec.structs.replace(provider, sealed_credentials="sealed-first", credentials=further)
        for provider in tenant_records.providers
    )
    encoded = encode(
        contents(
            msgspec.structs.replace(tenant_records, providers=providers), msgspec.json.encode({}), frozenset()
        ),
        outpost_id=OUTPOST, tenant_id=TENANT, issued_at=int(time()), expires_at=int(time()) + 60,
    )  # fmt: skip
    assert b"sealed-" not in encoded
    snapshot_alias = compiled(decode(encoded).policy).find_alias("fast")
    assert snapshot_alias is not None
    assert [deployment.candidate.credential for deployment in snapshot_alias.live] == ["default", "second"]
    assert len({deployment.key for deployment in snapshot_alias.live}) == 2


def test_deployments_are_in_the_order_of_their_tiers_and_absent_models_are_left_out() -> None:
    alias = alias_record("fast", {"provider": "one", "tier": 2}, {"provider": "two"}, {"provider": "three"})
    snapshot_alias = compiled(records(alias)).find_alias("fast")
    assert snapshot_alias is not None
    assert [deployment.name for deployment in snapshot_alias.live] == ["two/m", "one/m"]


def test_an_inactive_model_is_no_deployment() -> None:
    tenant_records = records(alias_record("fast", {"provider": "one"}))
    models = tuple(msgspec.structs.replace(model, is_active=False) for model in tenant_records.models)
    snapshot = compiled(msgspec.structs.replace(tenant_records, models=models))
    snapshot_alias = snapshot.find_alias("fast")
    assert snapshot_alias is not None
    assert snapshot_alias.live == ()
    assert snapshot.knows("fast")


def test_an_override_of_an_outpost_takes_precedence() -> None:
    alias = alias_record("fast", {"provider": "one"})
    snapshot = compiled(records(alias, overrides=Overrides(routes={"fast": "two/m"})))
    assert snapshot.find_alias("fast") is None
    assert [model.provider for model in snapshot.find_models("fast")] == ["two"]
    assert compiled(records(alias, overrides=Overrides(routes={"other": "two/m"}))).find_alias("fast") is not None


def test_the_key_of_a_deployment_differs_between_aliases() -> None:
    one, two = (alias_record(name, {"provider": "one"}) for name in ("a", str(new_id())))
    snapshot = compiled(records(one, two))
    keys = {deployment.key for name in (one.name, two.name) for deployment in snapshot.aliases[name].live}
    assert len(keys) == 2
