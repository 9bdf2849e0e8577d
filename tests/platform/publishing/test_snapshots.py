"""Policy snapshots: compiled in advance, replaced by newer ones, and kept if a newer one has errors."""

import pytest
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.identity import TenantId
from gatehouse.platform.publishing import snapshots
from gatehouse.platform.publishing.snapshots import PolicyUnavailable, Publisher
from gatehouse.policy.catalog import TenantRecords
from gatehouse.policy.compile import PolicyFault, compile_policy
from gatehouse.policy.snapshot import Snapshot


async def test_faults_of_an_organizations_policy_do_not_prevent_the_start(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiled(records: TenantRecords, before: Snapshot | None) -> Snapshot | list[PolicyFault]:
        return [PolicyFault("rule 7: not valid")] if records.tenant_id == tenant.id else compile_policy(records, before)

    monkeypatch.setattr(snapshots, "compile_policy", compiled)
    publisher = Publisher(platform.host.database)
    faulty, sound = TenantId(tenant.id), TenantId(other_tenant.id)
    await publisher.preload(faulty)
    assert (await publisher.current(sound)).tenant_id == sound
    assert publisher.status[faulty].faults == ["rule 7: not valid"]
    with pytest.raises(PolicyUnavailable):
        await publisher.current(faulty)


async def test_the_least_recently_used_snapshot_is_discarded_first(
    platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MAX_SNAPSHOTS", 2)
    first, second, third = [TenantId((await platform.new_tenant()).id) for _ in range(3)]
    publisher = Publisher(platform.host.database)
    of_first = await publisher.current(first)
    of_second = await publisher.current(second)
    await publisher.current(first)
    await publisher.current(third)
    assert await publisher.current(first) is of_first
    assert await publisher.current(second) is not of_second
