"""Batches by the stock OpenAI client (docs/batches.md)."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import openai
import pytest
from tests.platform.batches.conftest import (
    add_budget,
    create,
    deactivate,
    ended,
    jsonl,
    line,
    occupied,
    records,
    results,
)
from tests.support.platform import RunningPlatform, Tenant

ADDRESS = "maria.gomez@bank-of-gates.com"
CARD = "4111 1111 1111 1111"
MESSAGES: Any = [{"role": "user", "content": "Hello"}]


async def test_each_line_of_a_batch_has_a_result_a_usage_record_and_an_audit_event(
    platform: RunningPlatform, owner: Tenant, client: openai.AsyncOpenAI
) -> None:
    lines = [line(f"c{n}", f"Question {n}") for n in range(5)] + [line("bad", model="sandbox/none")]
    batch = await create(client, lines, metadata={"job": "nightly"})
    assert (batch.status, batch.metadata, batch.request_counts.total) == ("validating", {"job": "nightly"}, 6)
    batch = await ended(client, batch.id)
    assert batch.status == "completed"
    assert (batch.request_counts.completed, batch.request_counts.failed) == (5, 1)
    assert batch.in_progress_at <= batch.finalizing_at <= batch.completed_at
    output, errors = await results(client, batch.output_file_id), await results(client, batch.error_file_id)
    assert list(output) == [f"c{n}" for n in range(5)]
    for number in range(5):
        response = output[f"c{number}"]["response"]
        assert (response["status_code"], output[f"c{number}"]["error"]) == (200, None)
        assert f"Question {number}" in response["body"]["choices"][0]["message"]["content"]
    assert errors["bad"]["response"]["status_code"] == 404
    assert errors["bad"]["response"]["body"]["error"]["code"] == "model_not_found"
    calls = await records(platform, owner)
    assert {record["request_id"] for record in calls} == {f"{batch.id}-{number}" for number in range(1, 7)}
    tokens = sum(record["input_tokens"] or 0 for record in calls)
    assert batch.usage is not None
    assert batch.usage.input_tokens == tokens > 0
    events = platform.sql("SELECT details->>'path' FROM audit_events WHERE request_id LIKE %s", [f"{batch.id}-%"])
    assert events == [("/v1/batches",)] * 6
    (created,) = await platform.audit(owner, "batch.created")
    assert (created["actor_id"], created["details"]["lines"]) == (str(owner.user.id), 6)
    (completed,) = await platform.audit(owner, "batch.completed")
    assert (completed["details"]["succeeded"], completed["details"]["errored"]) == (5, 1)


async def test_the_sizes_of_result_files_are_those_of_their_contents(client: openai.AsyncOpenAI) -> None:
    batch = await ended(client, (await create(client, [line("a"), line("b", model="none")])).id)
    for file_id in (batch.output_file_id, batch.error_file_id):
        file = await client.files.retrieve(file_id)
        assert file.purpose == "batch_output"
        assert file.bytes == len((await client.files.content(file_id)).content)


async def test_responses_and_embeddings_can_be_in_batches(
    platform: RunningPlatform, owner: Tenant, client: openai.AsyncOpenAI
) -> None:
    for endpoint, model, kind in (
        ("/v1/responses", "sandbox/echo", "response"),
        ("/v1/embeddings", "sandbox/embed", "list"),
    ):
        body = {"model": model, "input": "Hello"}
        entry = {"custom_id": "a", "method": "POST", "url": endpoint, "body": body}
        file = await client.files.create(file=("calls.jsonl", jsonl([entry])), purpose="batch")
        batch = await client.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window="24h")  # type: ignore[arg-type]
        batch = await ended(client, batch.id)
        assert batch.request_counts.completed == 1
        assert (await results(client, batch.output_file_id))["a"]["response"]["body"]["object"] == kind


async def test_a_result_names_the_fields_that_the_provider_did_not_receive(
    owner: Tenant, client: openai.AsyncOpenAI
) -> None:
    entries = [
        {"custom_id": name, "method": "POST", "url": "/v1/responses",
         "body": {"model": "sandbox/echo", "input": "Hello", **fields}}
        for name, fields in (("a", {"max_tool_calls": 5, "truncation": "auto"}), ("b", {}))
    ]  # fmt: skip
    file = await client.files.create(file=("calls.jsonl", jsonl(entries)), purpose="batch")
    created = await client.batches.create(input_file_id=file.id, endpoint="/v1/responses", completion_window="24h")
    output = await results(client, (await ended(client, created.id)).output_file_id)
    assert output["a"]["response"]["gateway_dropped"] == ["max_tool_calls", "truncation"]
    assert "gateway_dropped" not in output["b"]["response"]


@pytest.mark.parametrize(
    ("bad", "place"),
    [
        (b"{", "line 2"),
        (b'{"custom_id": "b"}', "line 2"),
        (line("a"), "line 2.custom_id"),
        (line(""), "line 2.custom_id"),
        ({**line("b"), "method": "GET"}, "line 2.method"),
        ({**line("b"), "url": "/v1/embeddings"}, "line 2.url"),
        (line("b", stream=True), "line 2.body.stream"),
        (line("b", messages="x"), "line 2.body.messages"),
    ],
)
async def test_a_bad_line_is_named_and_nothing_is_stored(client: openai.AsyncOpenAI, bad: object, place: str) -> None:
    content = jsonl([line("a")]) + (bad if isinstance(bad, bytes) else jsonl([bad]))
    file = await client.files.create(file=("calls.jsonl", content), purpose="batch")
    with pytest.raises(openai.BadRequestError) as refused:
        await client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    assert (refused.value.code, refused.value.param) == ("invalid_batch_line", place)
    assert (await client.batches.list()).data == []


async def test_an_unknown_input_file_and_an_unknown_endpoint_are_named(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await client.batches.create(
            input_file_id=f"file-{'0' * 32}", endpoint="/v1/chat/completions", completion_window="24h"
        )
    assert refused.value.param == "input_file_id"
    with pytest.raises(openai.BadRequestError) as refused:
        await client.batches.create(input_file_id="file-x", endpoint="/v1/moderations", completion_window="24h")
    assert refused.value.param == "endpoint"


async def test_a_file_without_lines_is_refused(client: openai.AsyncOpenAI) -> None:
    file = await client.files.create(file=("calls.jsonl", b"\n \n"), purpose="batch")
    with pytest.raises(openai.BadRequestError, match="no lines"):
        await client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")


async def test_a_batch_that_exceeds_a_budget_is_refused(owner: Tenant, client: openai.AsyncOpenAI) -> None:
    await add_budget(owner, limit_requests=3)
    with pytest.raises(openai.RateLimitError) as refused:
        await create(client, [line(f"c{n}") for n in range(4)])
    assert refused.value.code == "quota_exceeded"
    batch = await ended(client, (await create(client, [line(f"c{n}") for n in range(3)])).id)
    assert batch.request_counts.completed == 3
    with pytest.raises(openai.RateLimitError):
        await create(client, [line("one more")])


async def test_the_budget_of_a_running_batch_is_reserved(
    platform: RunningPlatform, owner: Tenant, client: openai.AsyncOpenAI
) -> None:
    """Other calls cannot use what the remaining lines need."""
    await add_budget(owner, limit_requests=10)
    async with occupied(platform):
        batch = await create(client, [line(f"c{n}") for n in range(10)])
        async with asyncio.timeout(60):
            while not any(account.reserved[1] for account in platform.host.spender._all_accounts()):
                await asyncio.sleep(0.05)
        with pytest.raises(openai.RateLimitError):
            await client.chat.completions.create(model="sandbox/echo", messages=MESSAGES)
    assert (await ended(client, batch.id)).request_counts.completed == 10


async def test_sensitive_data_is_redacted_in_lines_and_blocked_where_a_rule_blocks(
    owner: Tenant, client: openai.AsyncOpenAI
) -> None:
    rule = {"detector_name": "mail", "detector_type": "regex", "entity_type": "email", "action_tier": "redact"}
    answer = await owner.admin.client.post("/api/admin/dlp-rules/", json=rule)
    assert answer.status_code == 201, answer.text
    rule = {"detector_name": "card", "detector_type": "regex", "entity_type": "credit_card", "action_tier": "block"}
    answer = await owner.admin.client.post("/api/admin/dlp-rules/", json=rule)
    assert answer.status_code == 201, answer.text
    lines = [line("a", f"Write to {ADDRESS}"), line("b", f"Charge {CARD}")]
    batch = await ended(client, (await create(client, lines)).id)
    (result,) = (await results(client, batch.output_file_id)).values()
    text = result["response"]["body"]["choices"][0]["message"]["content"]
    assert ADDRESS not in text
    assert "Write to" in text
    errors = await results(client, batch.error_file_id)
    assert list(errors) == ["b"]
    assert errors["b"]["response"]["body"]["error"]["code"] == "dlp_violation"


async def test_an_engaged_kill_switch_refuses_the_lines(owner: Tenant, client: openai.AsyncOpenAI) -> None:
    switch = "/api/v1/admin/kill-switch/providers/sandbox/disable"
    assert (await owner.admin.client.post(switch, json={"reason": "other"})).is_success
    batch = await ended(client, (await create(client, [line("a")])).id)
    assert batch.output_file_id is None
    result = (await results(client, batch.error_file_id))["a"]
    assert (result["response"]["status_code"], result["response"]["body"]["error"]["code"]) == (
        503,
        "provider_unavailable",
    )


async def test_a_batch_stops_when_its_user_is_deactivated(
    platform: RunningPlatform, owner: Tenant, client: openai.AsyncOpenAI
) -> None:
    async with occupied(platform):
        batch = await create(client, [line("a"), line("b")])
        await deactivate(owner, owner.user)
    async with asyncio.timeout(60):
        while not (await platform.audit(owner, "batch.failed")):
            await asyncio.sleep(0.1)
    (event,) = await platform.audit(owner, "batch.failed")
    assert (event["reason"], event["details"]["cancelled"]) == ("credential_revoked", 2)
    assert await records(platform, owner) == []
    assert event["resource_id"] == str(UUID(hex=batch.id.removeprefix("batch_")))


async def test_a_cancelled_batch_keeps_the_results_of_the_lines_that_ended(
    platform: RunningPlatform, owner: Tenant, client: openai.AsyncOpenAI
) -> None:
    batch = await create(client, [line("a"), *(line(f"slow{n}", model="sandbox/slow-200ms") for n in range(30))])
    async with asyncio.timeout(60):
        while not (await client.batches.retrieve(batch.id)).request_counts.completed:
            await asyncio.sleep(0.05)
    assert (await client.batches.cancel(batch.id)).status == "cancelling"
    batch = await ended(client, batch.id)
    assert batch.status == "cancelled"
    counts = batch.request_counts
    assert counts.completed + counts.failed == counts.total == 31
    errors = await results(client, batch.error_file_id)
    assert {entry["error"]["code"] for entry in errors.values()} == {"batch_cancelled"}
    assert "a" in await results(client, batch.output_file_id)
    with pytest.raises(openai.ConflictError):
        await client.batches.cancel(batch.id)


async def test_a_batch_that_is_not_run_in_time_expires(platform: RunningPlatform, client: openai.AsyncOpenAI) -> None:
    async with occupied(platform):
        batch = await create(client, [line("a")])
        past = datetime.now(UTC) - timedelta(seconds=1)
        platform.sql("UPDATE batches SET expires_at = %s WHERE id = %s", [past, batch.id.removeprefix("batch_")])
    batch = await ended(client, batch.id)
    assert batch.status == "expired"
    assert (await results(client, batch.error_file_id))["a"]["error"]["code"] == "batch_expired"


async def test_batches_are_listed_by_pages(client: openai.AsyncOpenAI) -> None:
    created = [(await create(client, [line("a")])).id for _ in range(3)]
    page = await client.batches.list(limit=2)
    assert [batch.id for batch in page.data] == created[:0:-1]
    assert page.has_more
    assert [batch.id async for batch in client.batches.list(limit=2)] == created[::-1]


async def test_batches_and_files_of_others_are_not_found(
    platform: RunningPlatform, owner: Tenant, client: openai.AsyncOpenAI
) -> None:
    batch = await ended(client, (await create(client, [line("a")])).id)
    other = await platform.new_tenant()
    for person in (owner.admin, other.user, other.admin):
        for path in (f"/v1/batches/{batch.id}", f"/v1/files/{batch.input_file_id}/content"):
            answer = await person.client.get(path)
            assert (answer.status_code, answer.json()["error"]["type"]) == (404, "invalid_request_error")
        assert (await person.client.post(f"/v1/batches/{batch.id}/cancel")).status_code == 404
        assert (await person.client.delete(f"/v1/files/{batch.input_file_id}")).status_code == 404
        body = {"input_file_id": batch.input_file_id, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
        assert (await person.client.post("/v1/batches", json=body)).status_code == 400
        assert (await person.client.get("/v1/batches")).json()["data"] == []
    assert (await platform.anonymous.get(f"/v1/batches/{batch.id}")).status_code == 401
