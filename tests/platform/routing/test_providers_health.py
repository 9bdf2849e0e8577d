"""The states of a provider's health, and the scheduled checks (docs/providers.md)."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.clock import utc_now
from gatehouse.platform.routing.providers.health import CheckOutcome, HealthConfig, HealthState, next_health
from gatehouse.platform.routing.providers.schedule import run_due

GOOD = CheckOutcome(status="healthy", checked_at=utc_now(), latency_ms=1.0)
BAD = CheckOutcome(status="unreachable", checked_at=utc_now(), error="timeout", detail="No answer.")


def walk(outcomes: str, config: HealthConfig) -> str:
    """Apply good (`+`) and bad (`-`) results in order. Return whether the provider is unhealthy (`u`) or not (`.`)
    after each result."""
    health, seen = HealthState(), ""
    for outcome in outcomes:
        health = next_health(health, GOOD if outcome == "+" else BAD, config)
        seen += "u" if health.unhealthy else "."
    return seen


@pytest.mark.parametrize(
    ("outcomes", "seen"),
    [
        ("+++", "..."),
        ("---", "..u"),
        ("--+--", "....."),
        ("---+-++", "..uuuu."),
        ("---++---", "..uu...u"),
        ("-----", "..uuu"),
    ],
)
def test_failures_and_successes_count_in_a_row(outcomes: str, seen: str) -> None:
    assert walk(outcomes, HealthConfig()) == seen


@given(st.text("+-", max_size=60), st.integers(1, 6), st.integers(1, 6))
def test_the_status_changes_only_after_threshold_results_in_a_row(outcomes: str, fail: int, recover: int) -> None:
    seen = walk(outcomes, HealthConfig(failure_threshold=fail, recovery_threshold=recover))
    for at, (before, now) in enumerate(zip("." + seen, seen, strict=False)):
        if before != now:
            needed = "-" * fail if now == "u" else "+" * recover
            assert outcomes[: at + 1].endswith(needed)
    for at in range(len(outcomes)):
        if outcomes[: at + 1].endswith("-" * fail):
            assert seen[at] == "u"
        if outcomes[: at + 1].endswith("+" * recover):
            assert seen[at] == "."


async def connect(tenant: Tenant, fake: Any, slug: str = "mine", **checks: Any) -> None:
    base = f"/api/admin/providers/{slug}"
    answer = await tenant.admin.client.put(f"{base}/credentials", json={"base_url": fake.url + "/v1"})
    assert answer.status_code == 200, answer.text
    await tenant.admin.client.put(f"{base}/health-check-config", json={"timeout_ms": 300, **checks})


@pytest.fixture
def only(platform: RunningPlatform, tenant: Tenant) -> None:
    """Make the checks of other organizations' providers not due."""
    platform.sql("UPDATE providers SET last_health_check = now() WHERE tenant_id <> %s", [tenant.id])


async def run(platform: RunningPlatform) -> int:
    host = platform.host
    return await run_due(host.database, host.outbound, host.sealer)


def later(platform: RunningPlatform, tenant: Tenant, seconds: int = 31) -> None:
    platform.sql(
        "UPDATE providers SET last_health_check = last_health_check - make_interval(secs => %s) WHERE tenant_id = %s",
        [seconds, tenant.id],
    )


async def status(tenant: Tenant, slug: str = "mine") -> tuple[str, str]:
    provider = (await tenant.admin.client.get(f"/api/admin/providers/{slug}")).json()
    return provider["status"], provider["health_check_status"]


@pytest.mark.usefixtures("only")
async def test_a_provider_is_checked_once_an_interval(platform: RunningPlatform, tenant: Tenant, fake: Any) -> None:
    await connect(tenant, fake)
    assert [await run(platform) for _ in range(3)] == [1, 0, 0]
    assert await status(tenant) == ("active", "healthy")
    later(platform, tenant, 29)
    assert await run(platform) == 0
    later(platform, tenant, 2)
    assert await run(platform) == 1
    assert fake.paths == ["/v1/models"] * 2


@pytest.mark.usefixtures("only")
async def test_several_keepers_check_a_provider_once(platform: RunningPlatform, tenant: Tenant, fake: Any) -> None:
    await connect(tenant, fake)
    assert sum(await asyncio.gather(*(run(platform) for _ in range(8)))) == 1
    assert len(fake.requests) == 1


@pytest.mark.usefixtures("only")
async def test_workers_are_notified_only_of_a_changed_status(
    platform: RunningPlatform, tenant: Tenant, fake: Any
) -> None:
    await connect(tenant, fake, failure_threshold=2, recovery_threshold=1)
    changes = "SELECT count(*) FROM changes WHERE tenant_id = %s AND topic = 'provider_health'"
    seen = []
    for mode in ("good", 500, "hang", 500, "good", "good"):
        fake.mode = mode
        assert await run(platform) == 1
        later(platform, tenant)
        await platform.refresh()
        unhealthy = (tenant.id, "mine") in platform.host.replica.unhealthy
        seen.append((*await status(tenant), unhealthy, platform.sql(changes, [tenant.id])[0][0]))
    assert seen == [
        ("active", "healthy", False, 0),
        ("active", "degraded", False, 0),
        ("unhealthy", "unreachable", True, 1),
        ("unhealthy", "degraded", True, 1),
        ("active", "healthy", False, 2),
        ("active", "healthy", False, 2),
    ]
    (event,) = await platform.audit(tenant, "provider.became_unhealthy")
    assert (event["actor_type"], event["actor_id"], event["reason"]) == ("system", None, "timeout")


@pytest.mark.usefixtures("only")
async def test_stopped_providers_are_not_checked(platform: RunningPlatform, tenant: Tenant, fake: Any) -> None:
    await connect(tenant, fake, "off")
    await tenant.admin.client.put("/api/admin/providers/off/status", json={"enabled": False})
    await connect(tenant, fake, "unwatched", enabled=False)
    await connect(tenant, fake, "killed")
    entry = {"provider": "killed", "model_id": "m"}
    model = (await tenant.admin.client.post("/api/admin/models/catalog", json=entry)).json()
    path = f"/api/v1/admin/kill-switch/models/{model['id']}"
    await tenant.admin.client.post(f"{path}/disable", json={"reason": "security_event"})
    assert await run(platform) == 0
    await tenant.admin.client.post(f"{path}/enable")
    assert await run(platform) == 1
    assert len(fake.requests) == 1


@pytest.mark.usefixtures("only")
async def test_a_hanging_provider_does_not_delay_other_checks(
    platform: RunningPlatform, tenant: Tenant, fake_providers: Any
) -> None:
    slow, good = await fake_providers.start(), await fake_providers.start()
    slow.mode = "hang"
    await connect(tenant, slow, "slow", timeout_ms=2_000)
    await connect(tenant, good, "good")
    running = asyncio.create_task(run(platform))
    while await status(tenant, "good") != ("active", "healthy"):
        await asyncio.sleep(0.02)
    assert not running.done()
    assert await running == 2
    assert await status(tenant, "slow") == ("active", "unreachable")


@pytest.mark.usefixtures("only")
async def test_results_of_an_older_configuration_are_discarded(
    platform: RunningPlatform, tenant: Tenant, fake_providers: Any
) -> None:
    slow, good = await fake_providers.start(), await fake_providers.start()
    slow.mode = "hang"
    await connect(tenant, slow, timeout_ms=600)
    running = asyncio.create_task(run(platform))
    while not slow.requests:
        await asyncio.sleep(0.01)
    await connect(tenant, good, timeout_ms=600)
    await running
    assert await status(tenant) == ("active", "unknown")
    assert await run(platform) == 1
    assert await status(tenant) == ("active", "healthy")


@pytest.mark.usefixtures("only")
async def test_of_two_concurrent_checks_one_is_stored(platform: RunningPlatform, tenant: Tenant, fake: Any) -> None:
    await connect(tenant, fake, timeout_ms=600, failure_threshold=2)
    fake.mode = "hang"
    running = asyncio.create_task(run(platform))
    while not fake.requests:
        await asyncio.sleep(0.01)
    fake.mode = 500
    await tenant.admin.client.post("/api/admin/providers/mine/health-check")
    await running
    assert await status(tenant) == ("active", "degraded")
