"""Message batches by the stock Anthropic client (docs/batches.md)."""

import asyncio
from typing import Any

import anthropic
import pytest
from tests.platform.batches.conftest import TIMEOUT_SECONDS, add_budget, records
from tests.support.platform import RunningPlatform, Tenant


def request(custom_id: str, content: str = "Hello", *, model: str = "sandbox/echo", **params: Any) -> Any:
    params = {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": content}], **params}
    return {"custom_id": custom_id, "params": params}


async def ended(claude: anthropic.AsyncAnthropic, batch_id: str) -> Any:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while (batch := await claude.messages.batches.retrieve(batch_id)).processing_status != "ended":
            await asyncio.sleep(0.1)
    return batch


async def test_a_batch_is_run_and_its_results_are_read(
    platform: RunningPlatform, owner: Tenant, claude: anthropic.AsyncAnthropic
) -> None:
    batch = await claude.messages.batches.create(requests=[request("a", "First"), request("b", model="sandbox/none")])
    assert (batch.type, batch.processing_status, batch.results_url) == ("message_batch", "in_progress", None)
    assert batch.request_counts.processing == 2
    batch = await ended(claude, batch.id)
    assert (batch.request_counts.succeeded, batch.request_counts.errored) == (1, 1)
    entries = [entry async for entry in await claude.messages.batches.results(batch.id)]
    assert [entry.custom_id for entry in entries] == ["a", "b"]
    succeeded, errored = entries[0].result, entries[1].result
    assert succeeded.type == "succeeded"
    assert succeeded.message.content[0].type == "text"
    assert "First" in succeeded.message.content[0].text
    assert errored.type == "errored"
    assert errored.error.type == "error"
    assert "sandbox/none" in errored.error.error.message
    assert {record["request_id"] for record in await records(platform, owner)} == {f"{batch.id}-1", f"{batch.id}-2"}


async def test_a_result_names_the_fields_that_the_provider_did_not_receive(claude: anthropic.AsyncAnthropic) -> None:
    requests = [request("a", top_k=5, service_tier="standard_only"), request("b")]
    batch = await ended(claude, (await claude.messages.batches.create(requests=requests)).id)
    entries = [entry async for entry in await claude.messages.batches.results(batch.id)]
    dropped = [(entry.result.model_extra or {}).get("gateway_dropped") for entry in entries]
    assert dropped == [["top_k"], None]


async def test_the_beta_client_works(claude: anthropic.AsyncAnthropic) -> None:
    batch = await claude.beta.messages.batches.create(requests=[request("a")])
    await ended(claude, batch.id)
    entries = [entry async for entry in await claude.beta.messages.batches.results(batch.id)]
    assert entries[0].result.type == "succeeded"


async def test_batches_are_listed_by_pages_in_both_directions(claude: anthropic.AsyncAnthropic) -> None:
    created = [(await claude.messages.batches.create(requests=[request("a")])).id for _ in range(3)]
    page = await claude.messages.batches.list(limit=2)
    assert [batch.id for batch in page.data] == created[:0:-1]
    assert page.has_more
    assert [batch.id async for batch in claude.messages.batches.list(limit=2)] == created[::-1]
    page = await claude.messages.batches.list(limit=1, before_id=created[0])
    assert [batch.id for batch in page.data] == [created[1]]


async def test_a_cancelled_batch_ends_with_cancelled_results(claude: anthropic.AsyncAnthropic) -> None:
    requests = [request(f"c{n}", model="sandbox/slow-200ms") for n in range(60)]
    batch = await claude.messages.batches.create(requests=requests)
    with pytest.raises(anthropic.ConflictError):
        await claude.messages.batches.delete(batch.id)
    assert (await claude.messages.batches.cancel(batch.id)).processing_status == "canceling"
    batch = await ended(claude, batch.id)
    assert batch.cancel_initiated_at is not None
    assert batch.request_counts.canceled > 0
    results = [entry.result.type async for entry in await claude.messages.batches.results(batch.id)]
    assert results.count("canceled") == batch.request_counts.canceled
    with pytest.raises(anthropic.ConflictError):
        await claude.messages.batches.cancel(batch.id)
    assert (await claude.messages.batches.delete(batch.id)).type == "message_batch_deleted"
    with pytest.raises(anthropic.NotFoundError):
        await claude.messages.batches.retrieve(batch.id)


@pytest.mark.parametrize(
    ("requests", "param"),
    [
        ([], "requests"),
        ([request("a"), request("a")], "requests.1.custom_id"),
        ([request("")], "requests.0.custom_id"),
        ([request("a", stream=True)], "requests.0.params.stream"),
        ([request("a", messages="x")], "requests.0.params.messages"),
        ("x", "requests"),
    ],
)
async def test_a_bad_request_is_named_in_anthropics_envelope(owner: Tenant, requests: Any, param: str) -> None:
    answer = await owner.user.client.post("/v1/messages/batches", json={"requests": requests})
    assert (answer.status_code, answer.json()["type"]) == (400, "error")
    assert answer.json()["error"]["param"] == param


async def test_a_body_that_is_not_json_is_refused(owner: Tenant) -> None:
    answer = await owner.user.client.post("/v1/messages/batches", content=b"{" * 100_000)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_json")


async def test_a_batch_that_exceeds_a_budget_is_refused(owner: Tenant, claude: anthropic.AsyncAnthropic) -> None:
    await add_budget(owner, limit_tokens=1000)
    with pytest.raises(anthropic.RateLimitError):
        await claude.messages.batches.create(requests=[request(f"c{n}", max_tokens=500) for n in range(3)])


async def test_batches_of_others_and_of_the_other_api_are_not_found(
    platform: RunningPlatform, owner: Tenant, claude: anthropic.AsyncAnthropic
) -> None:
    batch = await claude.messages.batches.create(requests=[request("a")])
    other = await platform.new_tenant()
    for person in (owner.admin, other.user, other.admin):
        for method, path in (("GET", ""), ("GET", "/results"), ("POST", "/cancel"), ("DELETE", "")):
            answer = await person.client.request(method, f"/v1/messages/batches/{batch.id}{path}")
            assert (answer.status_code, answer.json()["type"]) == (404, "error")
    same_id = batch.id.replace("msgbatch_", "batch_")
    assert (await owner.user.client.get(f"/v1/batches/{same_id}")).status_code == 404
    assert (await platform.anonymous.get("/v1/messages/batches")).status_code == 401
