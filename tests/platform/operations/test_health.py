"""Probes and the health of the system (docs/operations.md, "Probes")."""

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID, uuid4

import pytest
from tests.support.platform import RunningPlatform, Tenant
from tests.support.relay import relay

from gatehouse import __version__
from gatehouse.detection.service.tiers import TierState
from gatehouse.foundation.identity import Caller, CallerKind, Role, TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.operations.health import components, summary
from gatehouse.platform.operations.health.patience import timed_out
from gatehouse.platform.operations.health.summary import Unhealthy

SYSTEM = "/api/admin/system"


async def test_the_probes_answer_without_a_credential(platform: RunningPlatform) -> None:
    # An earlier test may have blocked the event loop. Then the change feed lags, and the worker is not ready.
    await platform.refresh()
    for path, body in [
        ("/health", {"status": "ok"}),
        ("/api/health/live", {"status": "ok"}),
        ("/api/health/ready", {"status": "ready"}),
    ]:
        answer = await platform.anonymous.get(path)
        assert (answer.status_code, answer.json()) == (200, body)
    started = (await platform.anonymous.get("/api/health/startup")).json()
    assert started["status"] == "started"
    assert started["startup_duration_ms"] > 0


async def test_health_endpoints_are_not_rate_limited(platform: RunningPlatform) -> None:
    assert "X-RateLimit-Limit" not in (await platform.anonymous.get("/health")).headers


async def test_the_startup_probe_shows_the_progress(platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform.host.startup, "duration_ms", None)
    monkeypatch.setattr(platform.host.startup, "phase", "policies")
    answer = await platform.anonymous.get("/api/health/startup")
    assert answer.status_code == 503
    body = answer.json()
    assert (body["status"], body["phase"]) == ("starting", "policies")
    assert body["elapsed_ms"] > 0


@pytest.mark.parametrize(
    ("part", "name", "value", "failing"),
    [
        ("journal", "full", lambda: True, "journal"),
        ("feed", "lost", True, "database"),
        ("feed", "lost", False, "change_feed"),
    ],
)
async def test_a_worker_that_is_not_ready_names_the_failed_check(
    platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch, part: str, name: str, value: object, failing: str
) -> None:
    if part == "feed":
        # The feed keeps running and would set an attribute of the instance back, so properties of the class replace it.
        monkeypatch.setattr(type(platform.host.feed), name, property(lambda _: value, lambda *_: None), raising=False)
        monkeypatch.setattr(type(platform.host.feed), "lag_seconds", property(lambda _: 60.0))
    else:
        monkeypatch.setattr(getattr(platform.host, part), name, value)
    answer = await platform.anonymous.get("/api/health/ready")
    assert (answer.status_code, answer.json()) == (503, {"status": "not_ready", "failing_checks": [failing]})


@pytest.mark.parametrize(("mode", "status"), [("open", 200), ("closed", 503)])
async def test_a_worker_without_the_database_is_ready_unless_switches_fail_closed(
    platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch, mode: str, status: int
) -> None:
    monkeypatch.setattr(type(platform.host.feed), "lost", property(lambda _: True, lambda *_: None), raising=False)
    monkeypatch.setattr(type(platform.host.feed), "lag_seconds", property(lambda _: 60.0))
    settings = platform.host.settings.model_copy(update={"switch_fail_mode": mode})
    monkeypatch.setattr(platform.host, "settings", settings)
    assert (await platform.anonymous.get("/api/health/ready")).status_code == 503
    assert (await platform.anonymous.get("/api/health/ready?for=traffic")).status_code == status


async def test_readiness_requires_the_journal_and_the_master_key(
    platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    await platform.refresh()
    assert (await platform.anonymous.get("/api/health/ready?for=traffic")).status_code == 200
    monkeypatch.setattr(platform.host.journal, "full", lambda: True)
    monkeypatch.setattr(platform.host.signer, "cannot_open", True)
    answer = await platform.anonymous.get("/api/health/ready?for=traffic")
    assert (answer.status_code, answer.json()["failing_checks"]) == (503, ["journal", "master_key"])


async def test_an_unknown_purpose_of_a_probe_is_refused(platform: RunningPlatform) -> None:
    answer = await platform.anonymous.get("/api/health/ready?for=trafic")
    assert answer.status_code in {400, 422}
    assert "for" in answer.text


async def test_a_worker_that_stopped_following_changes_is_not_alive(
    platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(platform.host.feed), "ended", property(lambda _: True))
    answer = await platform.anonymous.get("/api/health/live")
    assert (answer.status_code, answer.json()["status"]) == (503, "unhealthy")
    assert answer.json()["reason"]


async def test_the_systems_health_lists_every_component(platform: RunningPlatform, tenant: Tenant) -> None:
    answer = await tenant.admin.client.get(f"{SYSTEM}/health")
    assert answer.status_code == 200
    body = answer.json()
    assert body["version"] == __version__
    assert datetime.fromisoformat(body["timestamp"])
    parts = body["components"]
    assert set(parts) == {
        "database", "redis", "ner_service", "deberta_service", "celery_workers", "providers", "journal", "nodes",
    }  # fmt: skip
    assert parts["database"]["status"] == "healthy"
    assert parts["database"]["latency_ms"] > 0
    assert parts["database"]["pool"]["max"] == 10
    assert parts["journal"]["status"] == "healthy"
    assert (parts["nodes"]["count"], "nodes" in parts["nodes"]) == (parts["nodes"]["count"], False)
    assert parts["nodes"]["count"] >= 1
    # The tier is not started before a rule needs it.
    assert parts["deberta_service"] == {"status": "healthy", "detail": "idle"}


async def test_the_providers_component_shows_only_the_organizations_own(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    platform.sql(
        "INSERT INTO providers (tenant_id, id, name, kind, health_check_status, health_latency_ms, unhealthy)"
        " VALUES (%s, 'good', 'g', 'ollama', 'healthy', 12.5, false), (%s, 'bad', 'b', 'ollama', 'unreachable', null,"
        " true)",
        [tenant.id, tenant.id],
    )
    body = (await tenant.admin.client.get(f"{SYSTEM}/health")).json()
    assert set(body["components"]["providers"]) == {"good", "bad"}
    assert body["components"]["providers"]["good"] == {"status": "healthy", "latency_ms": 12.5, "last_checked": None}
    assert body["components"]["providers"]["bad"]["status"] == "unhealthy"
    assert body["status"] == "degraded"


@pytest.mark.parametrize("cut", ["refuse", "swallow"])
async def test_health_is_answered_in_time_without_the_database(
    platform: RunningPlatform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    monkeypatch.setattr(components, "_DATABASE_TIMEOUT_SECONDS", 0.5)
    monkeypatch.setattr(summary, "_QUERY_TIMEOUT_SECONDS", 0.5)
    admin = Caller(kind=CallerKind.USER, tenant_id=TenantId(tenant.id), role=Role.ADMIN)
    with relay(platform.host.settings.gatehouse_home / "postgres" / ".s.PGSQL.5432") as way:
        database = Database(way.url, pool_size=2)
        monkeypatch.setattr(platform.host, "database", database)
        assert (await components.all_of(platform.host, admin))["database"]["status"] == "healthy"
        getattr(way, cut)()
        async with asyncio.timeout(60):
            result = await components.all_of(platform.host, admin)
            with pytest.raises(Unhealthy):
                await summary.of(platform.host, admin)
        assert (result["database"]["status"], components.overall(result)) == ("unhealthy", "unhealthy")
        assert (result["nodes"], result["celery_workers"]) == ({"status": "unknown"}, {"status": "unknown"})
        way.mend()
        async with asyncio.timeout(60):
            while timed_out:
                await asyncio.sleep(0.02)
        await database.close()


async def test_operators_see_the_workers_by_name(platform: RunningPlatform) -> None:
    operator = await platform.operator()
    nodes = (await operator.client.get(f"{SYSTEM}/health/components/nodes")).json()["nodes"]
    assert platform.host.node.name in {node["name"] for node in nodes}


async def test_a_process_with_jobs_is_seen_by_its_heartbeat_and_operators_see_what_waits(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    path = f"{SYSTEM}/health/components/celery_workers"
    silent = (await tenant.admin.client.get(path)).json()
    assert (silent["status"], silent["workers"]) == ("degraded", 0)
    node, due, later = uuid4(), uuid4(), uuid4()
    platform.sql(
        "INSERT INTO nodes (id, name, kind, pid, host, status) VALUES (%s, 'n', 'worker', 1, 'h', '{\"jobs\": true}')",
        [node],
    )
    operator = await platform.operator()
    before = (await operator.client.get(path)).json()["waiting_jobs"]
    for job_id, delay in ((due, "-1 minute"), (later, "1 hour")):
        platform.sql(
            "INSERT INTO jobs (id, kind, lane, run_at) VALUES (%s, 'tests.waits', %s, now() + %s::interval)",
            [job_id, str(job_id), delay],
        )
    try:
        assert (await tenant.admin.client.get(path)).json() == {"status": "healthy", "workers": 1}
        seen = (await operator.client.get(path)).json()
        assert seen == {"status": "healthy", "workers": 1, "waiting_jobs": before + 1}
    finally:
        platform.sql("DELETE FROM nodes WHERE id = %s", [node])
        platform.sql("DELETE FROM jobs WHERE kind = 'tests.waits'")


async def test_only_operators_see_why_a_model_cannot_be_loaded(
    platform: RunningPlatform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def states() -> dict[str, TierState]:
        return {"ner": TierState("unusable", 3, "/srv/model is none"), "llm": TierState("idle")}

    monkeypatch.setattr(platform.host.detectors, "_states", states)
    operator = await platform.operator()
    results, seen = [
        (await person.client.get(f"{SYSTEM}/health")).json()["components"] for person in (tenant.admin, operator)
    ]
    assert results["ner_service"] == {"status": "degraded", "detail": "the model cannot be loaded"}
    assert results["deberta_service"] == {"status": "healthy", "detail": "idle"}
    assert seen["ner_service"] == {**results["ner_service"], "waiting": 3, "cause": "/srv/model is none"}


async def test_a_single_component_is_shown_and_an_unknown_one_is_404(tenant: Tenant) -> None:
    assert (await tenant.auditor.client.get(f"{SYSTEM}/health/components/database")).json()["status"] == "healthy"
    unknown = await tenant.admin.client.get(f"{SYSTEM}/health/components/nonsense")
    assert (unknown.status_code, unknown.json()["error"]) == (404, "not_found")


async def test_without_the_database_the_system_reports_it(
    platform: RunningPlatform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object, **__: object) -> None:
        raise OSError("gone")

    monkeypatch.setattr(platform.host.database, "tenant", gone)
    body = (await tenant.admin.client.get(f"{SYSTEM}/health")).json()
    assert (body["status"], body["components"]["database"]["status"]) == ("unhealthy", "unhealthy")
    summary = await tenant.admin.client.get(f"{SYSTEM}/metrics-summary")
    assert (summary.status_code, summary.json()["error"]) == (503, "unhealthy")


async def test_the_version_is_shown(platform: RunningPlatform, tenant: Tenant) -> None:
    body = (await tenant.admin.client.get(f"{SYSTEM}/version")).json()
    assert set(body) == {
        "platform_version", "api_version", "build_date", "git_commit", "environment", "schema_version", "feature_flags",
    }  # fmt: skip
    assert (body["platform_version"], body["api_version"]) == (__version__, "v1")
    assert body["schema_version"] == platform.sql("SELECT version_num FROM alembic_version")[0][0]
    assert body["feature_flags"]["dlp_enabled"] is True


@pytest.mark.parametrize("path", ["health", "health/components/database", "version", "metrics-summary"])
async def test_callers_without_the_right_are_refused(platform: RunningPlatform, tenant: Tenant, path: str) -> None:
    anonymous = await platform.anonymous.get(f"{SYSTEM}/{path}")
    assert (anonymous.status_code, anonymous.json()["error"]) == (401, "unauthorized")
    refused = await tenant.user.client.get(f"{SYSTEM}/{path}")
    assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
    assert (await tenant.auditor.client.get(f"{SYSTEM}/{path}")).status_code == 200


def record(
    platform: RunningPlatform,
    tenant_id: UUID,
    status: str,
    latency: float,
    *,
    age: timedelta,
    cache: str | None = None,
) -> None:
    platform.sql(
        "INSERT INTO usage_records (tenant_id, id, timestamp, request_id, status, stream, input_tokens, cached_tokens,"
        " cost_usd, latency_ms, cache) VALUES (%s, %s, %s, 'r', %s, false, 30, 10, %s, %s, %s)",
        [tenant_id, new_id(), datetime.now(UTC) - age, status, Decimal("0.1"), latency, cache],
    )


async def test_the_summary_covers_the_organizations_last_hour(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    for number in range(1, 9):
        cache = {1: "hit", 2: "miss", 3: "miss", 4: "miss"}.get(number)
        record(platform, tenant.id, "success", 10.0 * number, age=timedelta(minutes=number), cache=cache)
    record(platform, tenant.id, "error", 90.0, age=timedelta(minutes=1))
    record(platform, tenant.id, "refused", 100.0, age=timedelta(minutes=1))
    record(platform, tenant.id, "success", 9999.0, age=timedelta(hours=2))
    record(platform, other_tenant.id, "success", 9999.0, age=timedelta(minutes=1))
    for status in ("blocked", "redacted", "redacted", "logged", "pending"):
        platform.sql(
            "INSERT INTO dlp_events (tenant_id, id, timestamp, request_id, direction, status)"
            " VALUES (%s, %s, now(), 'r', 'input', %s)",
            [tenant.id, new_id(), status],
        )
    body = (await tenant.admin.client.get(f"{SYSTEM}/metrics-summary")).json()
    assert body["period"] == "PT1H"
    assert body["requests"] == {"total": 10, "success": 8, "error": 2, "error_rate": 0.2}
    assert body["latency"] == {"p50_ms": 55.0, "p95_ms": 95.5, "p99_ms": 99.1}
    assert body["dlp"]["triggers"] == {"block": 1, "redact": 2, "flag": 1, "require_approval": 1}
    assert body["cache_hit_rate"] == 0.25
    assert body["active_connections"] >= 0
    operator = await platform.operator()
    everybody = (await operator.client.get(f"{SYSTEM}/metrics-summary")).json()
    assert everybody["requests"]["total"] >= 11


async def test_a_summary_without_requests_has_no_latency(tenant: Tenant) -> None:
    body = (await tenant.admin.client.get(f"{SYSTEM}/metrics-summary")).json()
    assert body["requests"] == {"total": 0, "success": 0, "error": 0, "error_rate": 0.0}
    assert body["latency"] == {"p50_ms": None, "p95_ms": None, "p99_ms": None}
