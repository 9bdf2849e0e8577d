"""The process with the models of DLP, on a real server: its answers, its restart after a kill, a suspension, its health
and metrics."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest
from tests.support.server import GatehouseServer

SECRETIVE = "Please write to Anna Schmidt in Berlin. "
HEALTH = "/api/admin/system/health/components"


@pytest.fixture(scope="module")
def server() -> Iterator[GatehouseServer]:
    with GatehouseServer(workers=2, env={"DLP_TIER_TIMEOUT_MS": "3000"}) as running:
        rules = [
            {"detector_name": "People", "detector_type": "ner", "entity_type": "person", "action_tier": "redact"},
            {
                "detector_name": "Attacks", "detector_type": "llm", "entity_type": "prompt_injection",
                "action_tier": "log_only", "config_json": {"labels": ["prompt_injection"]},
            },
        ]  # fmt: skip
        headers = {"Authorization": f"Bearer {running.key}"}
        running.settled()
        # No rule needs a model yet.
        assert running.detection == []
        for rule in rules:
            answer = httpx2.post(f"{running.url}/api/admin/dlp-rules/", json=rule, headers=headers, timeout=60)
            assert answer.status_code == 201, answer.text
        running.settled()
        yield running


@pytest.fixture
async def admin(server: GatehouseServer) -> AsyncIterator[httpx2.AsyncClient]:
    """A client that keeps no connection, so that both workers get requests."""
    limits = httpx2.Limits(max_keepalive_connections=0)
    headers = {"Authorization": f"Bearer {server.key}"}
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, limits=limits, timeout=60) as client:
        yield client


async def ask(admin: httpx2.AsyncClient, text: str = SECRETIVE) -> httpx2.Response:
    body = {"model": "sandbox/echo", "messages": [{"role": "user", "content": text}]}
    return await admin.post("/v1/chat/completions", json=body)


async def answered(admin: httpx2.AsyncClient, text: str = SECRETIVE) -> httpx2.Response:
    """Repeat the request until it does not fail because of a tier, and return that answer."""
    async with asyncio.timeout(60):
        while (answer := await ask(admin, text)).status_code != 200:
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "dlp_unavailable"), answer.text
    return answer


async def figure(admin: httpx2.AsyncClient, name: str) -> float:
    lines = (await admin.get("/metrics")).text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


async def test_names_are_redacted_and_the_health_shows_loaded_models(admin: httpx2.AsyncClient) -> None:
    before = await figure(admin, "service_dlp_pipeline_requests_total")
    answer = await answered(admin)
    assert "Anna Schmidt" not in answer.text
    assert answer.headers["X-DLP-Action"] == "REDACT"
    for component in ("ner_service", "deberta_service"):
        body = (await admin.get(f"{HEALTH}/{component}")).json()
        assert (body["status"], body["detail"]) == ("healthy", "loaded")
    await asyncio.sleep(1.2)
    assert await figure(admin, "service_dlp_pipeline_requests_total") > before
    assert await figure(admin, "service_dlp_pipeline_duration_seconds_sum") > 0
    assert await figure(admin, 'service_dlp_triggers_total{action="redact"}') > 0


async def test_a_killed_process_is_restarted_and_no_request_is_500(
    server: GatehouseServer, admin: httpx2.AsyncClient
) -> None:
    await answered(admin)
    (first,) = server.detection
    asking = [asyncio.create_task(ask(admin, f"{SECRETIVE}{number} " * 20)) for number in range(4)]
    await asyncio.sleep(0.03)
    first.kill()
    for answer in await asyncio.gather(*asking):
        assert answer.status_code in {200, 503}
        assert "Anna Schmidt" not in answer.text
    async with asyncio.timeout(60):
        while not (result := server.detection) or result[0].pid == first.pid:
            await asyncio.sleep(0.05)
    # A text whose result no worker has cached.
    assert "Carl Otto" not in (await answered(admin, "And to Carl Otto.")).text
    assert len(server.workers) == 2


async def test_a_stopped_process_is_reported_in_events_health_and_metrics(
    server: GatehouseServer, admin: httpx2.AsyncClient
) -> None:
    await answered(admin)
    (process,) = server.detection
    process.suspend()
    try:
        # No tier has a cached result for this text. The entities tier is called first.
        asking = [asyncio.create_task(ask(admin, f"Who is Berta Klein? {number}")) for number in range(2)]
        health = (await admin.get(f"{HEALTH}/ner_service")).json()
        assert (health["status"], health["detail"]) == ("degraded", "does not answer")
        for answer in await asyncio.gather(*asking):
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "dlp_unavailable")
        await asyncio.sleep(1.2)
        assert await figure(admin, 'service_dlp_tier_failures_total{reason="timeout",tier="ner"}') >= 2
        assert server.sql("SELECT count(*) FROM dlp_events WHERE entity_type = 'tier_failure'")[0][0] >= 1
    finally:
        process.resume()
    assert "Anna Schmidt" not in (await answered(admin)).text
    assert server.detection == [process]


async def test_the_depth_of_the_queue_is_the_sum_over_all_workers(
    server: GatehouseServer, admin: httpx2.AsyncClient
) -> None:
    await answered(admin)
    texts = [f"{number} is a number" for number in range(4)]
    for text in texts:
        await answered(admin)
        await ask(admin, text)
    (process,) = server.detection
    # The entities of these texts are cached, but not the labels of the new rule.
    rule = {
        "detector_name": "Jailbreaks", "detector_type": "llm", "entity_type": "jailbreak", "action_tier": "log_only",
        "config_json": {"labels": ["jailbreak"]},
    }  # fmt: skip
    assert (await admin.post("/api/admin/dlp-rules/", json=rule)).status_code == 201
    await asyncio.to_thread(server.settled)
    process.suspend()
    try:
        asking = [asyncio.create_task(ask(admin, SECRETIVE)) for _ in range(6)]
        deepest = 0.0
        async with asyncio.timeout(60):
            while not all(task.done() for task in asking):
                deepest = max(deepest, await figure(admin, "service_deberta_queue_depth"))
                await asyncio.sleep(0.1)
    finally:
        process.resume()
    assert deepest >= 2


async def test_the_process_ends_with_the_server(server: GatehouseServer) -> None:
    (process,) = server.detection
    assert await asyncio.to_thread(server.stop) == 0
    assert not process.is_running()
