"""Access to models by the rules of a caller's groups (docs/model-access.md)."""

from timeit import repeat
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatehouse.foundation.identity import TenantId
from gatehouse.policy.catalog import TenantRecords
from gatehouse.policy.compile import compile_policy
from gatehouse.policy.model_access import ModelAccess, ModelAccessRecord, compile_access
from gatehouse.policy.snapshot import Snapshot

ONE, TWO, THREE = (UUID(int=number) for number in (1, 2, 3))
GROUPS = st.sampled_from([ONE, TWO, THREE])
MODELS = st.sampled_from(["a/m", "a/n", "b/m", "b/with/slashes"])
RECORDS = st.lists(
    st.builds(ModelAccessRecord, group_id=GROUPS, model=MODELS, access_type=st.sampled_from(["ALLOW", "DENY"])),
    unique_by=lambda record: (record.group_id, record.model),
    max_size=12,
)


def rule(group: UUID, access_type: str, model: str = "a/m") -> ModelAccessRecord:
    fields = {"group_id": str(group), "model": model, "access_type": access_type}
    return msgspec.convert(fields, ModelAccessRecord)


def permits(access: ModelAccess, groups: list[UUID], model: str, *, restricted: bool) -> bool:
    provider, _, model_id = model.partition("/")
    return access.permits(groups, provider, model_id, restricted=restricted)


@pytest.mark.parametrize(
    ("rules", "groups", "open_model", "restricted_model"),
    [
        ([], [], True, False),
        ([], [ONE], True, False),
        ([rule(ONE, "ALLOW")], [ONE], True, True),
        ([rule(ONE, "ALLOW")], [TWO], True, False),
        ([rule(ONE, "ALLOW")], [], True, False),
        ([rule(ONE, "DENY")], [ONE], False, False),
        ([rule(ONE, "DENY")], [TWO], True, False),
        ([rule(ONE, "ALLOW"), rule(TWO, "DENY")], [ONE, TWO], False, False),
        ([rule(ONE, "ALLOW"), rule(TWO, "DENY")], [TWO, ONE], False, False),
        ([rule(ONE, "ALLOW"), rule(TWO, "DENY")], [ONE, THREE], True, True),
        ([rule(ONE, "ALLOW", "b/m"), rule(ONE, "DENY", "a/m2")], [ONE], True, False),
    ],
)
def test_a_denial_wins_and_a_grant_opens_a_restricted_model(
    rules: list[ModelAccessRecord], groups: list[UUID], open_model: bool, restricted_model: bool
) -> None:
    access = compile_access(rules)
    assert permits(access, groups, "a/m", restricted=False) is open_model
    assert permits(access, groups, "a/m", restricted=True) is restricted_model


@settings(deadline=None)  # the first policy compiles the built-in patterns
@given(records=RECORDS, groups=st.lists(GROUPS, unique=True), model=MODELS, restricted=st.booleans())
def test_serialized_rules_decide_like_a_reference_implementation(
    records: list[ModelAccessRecord], groups: list[UUID], model: str, restricted: bool
) -> None:
    original = TenantRecords(tenant_id=TenantId(UUID(int=9)), revision=4, model_access=tuple(records))
    decoded = msgspec.json.decode(msgspec.json.encode(original), type=TenantRecords)
    assert decoded == original
    access_types = {record.access_type for record in records if record.group_id in groups and record.model == model}
    meant = "DENY" not in access_types and (not restricted or "ALLOW" in access_types)
    for item in (original, decoded):
        snapshot = compile_policy(item)
        assert isinstance(snapshot, Snapshot)
        assert permits(snapshot.access, groups, model, restricted=restricted) is meant


def test_an_organization_without_rules_pays_less_than_a_microsecond() -> None:
    access = compile_access([])
    best = min(repeat(lambda: access.permits((ONE, TWO), "a", "m", restricted=False), number=20_000, repeat=5)) / 20_000
    assert best < 1e-6
