"""`/metrics` (docs/operations.md, "Metrics")."""

import asyncio
import os

import pytest
from tests.support.platform import RunningPlatform, Tenant

FAMILIES = {
    "service_http_requests_total": "counter",
    "service_http_request_duration_seconds": "histogram",
    "service_dlp_pipeline_requests_total": "counter",
    "service_dlp_pipeline_duration_seconds": "histogram",
    "service_dlp_triggers_total": "counter",
    "service_dlp_tier_failures_total": "counter",
    "service_db_pool_available_connections": "gauge",
    "service_db_pool_max_connections": "gauge",
    "service_group_spend_current_month_usd": "gauge",
    "service_group_budget_limit_usd": "gauge",
    "service_outpost_mtls_cert_expiry_timestamp_seconds": "gauge",
    "service_mfa_verifications_total": "counter",
    "service_deberta_queue_depth": "gauge",
    "service_provider_attempts_total": "counter",
    "service_mcp_calls_total": "counter",
    "service_mcp_call_duration_seconds": "histogram",
    "service_model_tokens_total": "counter",
    "service_model_cost_usd_total": "counter",
    "service_model_time_to_first_token_seconds": "histogram",
    "service_provider_duration_seconds": "histogram",
    "service_requests_refused_total": "counter",
    "service_unknown_price_total": "counter",
    "service_journal_bytes": "gauge",
    "service_journal_half_full": "gauge",
    "service_drain_lag_seconds": "gauge",
    "service_notifications_total": "counter",
    "service_webhook_lag_seconds": "gauge",
    "service_siem_backlog_events": "gauge",
    "service_siem_failing_receivers": "gauge",
    "service_archiver_failing_organizations": "gauge",
    "service_redis_degraded": "gauge",
    "service_response_cache_total": "counter",
    "service_response_cache_bytes": "gauge",
    "service_change_feed_lag_seconds": "gauge",
    "service_event_loop_lag_seconds": "gauge",
    "service_event_loop_tasks": "gauge",
}


async def figures(platform: RunningPlatform) -> dict[str, float]:
    answer = await platform.anonymous.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    lines = (line.rpartition(" ") for line in answer.text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


async def test_every_metric_family_is_exported_with_its_type(platform: RunningPlatform) -> None:
    text = (await platform.anonymous.get("/metrics")).text
    for name, kind in FAMILIES.items():
        assert f"# TYPE {name} {kind}\n" in text
        assert f"# HELP {name} " in text


async def test_known_values_are_exported(platform: RunningPlatform) -> None:
    values = await figures(platform)
    assert values["service_db_pool_max_connections"] == 10
    assert 0 <= values["service_db_pool_available_connections"] <= 10
    assert values["service_journal_bytes"] >= 0
    assert values["service_change_feed_lag_seconds"] < 60


async def test_tasks_are_exported_for_every_process(platform: RunningPlatform) -> None:
    name = f'service_event_loop_tasks{{pid="{os.getpid()}"}}'

    async def count_above(*, above: float) -> float:
        async with asyncio.timeout(60):
            while (count := (await figures(platform)).get(name, 0)) <= above:
                await asyncio.sleep(0.1)
        return count

    assert await count_above(above=0) < 1_000
    waiting = [asyncio.create_task(asyncio.sleep(60)) for _ in range(1_000)]
    try:
        # Other tasks may end meanwhile.
        await count_above(above=1_000)
    finally:
        for task in waiting:
            task.cancel()


async def test_administration_requests_are_counted_by_route_template(platform: RunningPlatform, tenant: Tenant) -> None:
    name = (
        'service_http_requests_total{method="PATCH",route="/api/v1/admin/org/feature-flags/{flag_name}",status="404"}'
    )
    before = (await figures(platform)).get(name, 0)
    for flag in ("one", "two/"):
        await tenant.admin.client.patch(f"/api/v1/admin/org/feature-flags/{flag}", json={"enabled": True})
    assert (await figures(platform))[name] == before + 2


async def test_unknown_paths_are_counted_as_one_series(platform: RunningPlatform) -> None:
    for number in range(5):
        await platform.anonymous.get(f"/made/up/{number}")
    values = await figures(platform)
    assert values['service_http_requests_total{method="GET",route="unmatched",status="404"}'] >= 5
    assert not any("/made" in name for name in values)


async def test_a_model_call_is_counted_with_its_attempts(platform: RunningPlatform) -> None:
    operator = await platform.operator()
    client = platform.client(await platform.new_key(operator))
    before = await figures(platform)
    for model, status in (("sandbox/echo", 200), ("sandbox/status-503", 502), ("none/none", 404)):
        body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
        assert (await client.post("/v1/chat/completions", json=body)).status_code == status
    after = await figures(platform)

    def grown(name: str) -> float:
        return after[name] - before.get(name, 0)

    route = 'method="POST",route="/v1/chat/completions"'
    for status in (200, 502, 404):
        assert grown(f'service_http_requests_total{{{route},status="{status}"}}') == 1
    assert grown(f"service_http_request_duration_seconds_count{{{route}}}") == 3
    assert grown('service_provider_attempts_total{kind="sandbox",result="success"}') == 1
    assert grown('service_provider_attempts_total{kind="sandbox",result="http_503"}') >= 1


async def test_tokens_cost_and_times_are_exported_by_provider_and_model(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    await platform.add_provider(tenant.id, "counted", "sandbox", "tokens-10-5")
    body = {"model": "counted/tokens-10-5", "messages": [{"role": "user", "content": "hi"}]}
    for more in ({}, {"stream": True}):
        answer = await tenant.user.client.post("/v1/chat/completions", json={**body, **more})
        assert answer.status_code == 200, answer.text
    values = await figures(platform)
    model = 'model="tokens-10-5",provider="counted"'
    assert values[f'service_model_tokens_total{{{model},type="input"}}'] == 20
    assert values[f'service_model_tokens_total{{{model},type="output"}}'] == 10
    assert values[f"service_model_cost_usd_total{{{model}}}"] == pytest.approx(2 * (10 * 0.000001 + 5 * 0.000002))
    assert values[f"service_model_time_to_first_token_seconds_count{{{model}}}"] == 1
    assert values[f"service_provider_duration_seconds_count{{{model}}}"] == 2


async def test_refused_calls_are_counted_by_reason(platform: RunningPlatform, tenant: Tenant) -> None:
    before = await figures(platform)
    body = {"model": "no/such", "messages": [{"role": "user", "content": "hi"}]}
    await tenant.user.client.post("/v1/chat/completions", json=body)
    await tenant.user.client.post("/v1/chat/completions", json={})
    await platform.anonymous.post("/v1/chat/completions", json=body)
    after = await figures(platform)
    for reason in ("model_not_found", "invalid_value", "missing_credential"):
        name = f'service_requests_refused_total{{reason="{reason}"}}'
        assert after[name] - before.get(name, 0) == 1, reason


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"])
async def test_requests_through_an_unknown_proxy_get_no_metrics(
    platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch, header: str
) -> None:
    """The proxy's own address is private, and the client's address is unknown."""
    monkeypatch.setattr(platform.host, "settings", platform.host.settings.model_copy(update={"trusted_proxies": ()}))
    assert (await platform.anonymous.get("/metrics")).status_code == 200
    answer = await platform.anonymous.get("/metrics", headers={header: "203.0.113.9"})
    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")


async def test_a_foreign_network_is_refused(platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = platform.host.settings.model_copy(update={"metrics_allowed_cidrs": ("10.0.0.0/8",)})
    monkeypatch.setattr(platform.host, "settings", allowed)
    answer = await platform.anonymous.get("/metrics")
    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
