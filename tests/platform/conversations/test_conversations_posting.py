"""A posted message goes through the whole pipeline, and messages are stored as the model received and sent them."""

import asyncio
import json
from typing import Any
from uuid import uuid4

import httpx2
import psycopg
import pytest
from tests.platform.conversations.conftest import (
    CARD,
    Begin,
    add_dlp_rule,
    answering,
    completion,
    contents,
    conversation_with_provider,
    messages_of,
    stored,
)
from tests.support.journal import Journal
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import Connection, upstream

from gatehouse.foundation.settings import Settings
from gatehouse.platform.conversations.conversations.table import WORKER_TIMEOUT_SECONDS


async def test_a_post_stores_question_and_answer(tenant_with_models: Tenant, begin: Begin) -> None:
    client, path = tenant_with_models.user.client, await begin()
    answer = await client.post(f"{path}/messages", json={"content": "  hello\n    there "})
    assert answer.status_code == 201
    posted = answer.json()
    assert posted["user_message"]["content"] == posted["assistant_message"]["content"] == "  hello\n    there "
    assert (posted["assistant_message"]["model"], posted["assistant_message"]["finish_reason"]) == (
        "sandbox/echo", "stop",
    )  # fmt: skip
    assert {message["request_id"] for message in posted.values()} == {answer.headers["X-Request-Id"]}
    assert (answer.headers["X-Gateway-Model"], answer.headers["X-DLP-Action"]) == ("echo", "ALLOW")
    kept = await messages_of(client, path)
    assert kept == [posted["user_message"], posted["assistant_message"]]
    assert [message["status"] for message in kept] == ["complete", "complete"]


async def test_the_texts_of_messages_are_encrypted_in_the_database(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin
) -> None:
    path = await begin()
    await tenant_with_models.user.client.post(f"{path}/messages", json={"content": "the nightingale sings"})
    assert "nightingale" not in stored(platform, tenant_with_models.id)


async def test_earlier_messages_are_sent_with_the_question(
    platform: RunningPlatform, tenant_with_models: Tenant
) -> None:
    async with upstream(answering("certainly")) as provider:
        client, path = (
            tenant_with_models.user.client,
            await conversation_with_provider(platform, tenant_with_models, provider.url),
        )
        await client.post(f"{path}/messages", json={"content": "one"})
        await client.post(f"{path}/messages", json={"content": "two"})
        first, second = (json.loads(request.body)["messages"] for request in provider.requests)
    assert contents(first) == [("user", "one")]
    assert contents(second) == [("user", "one"), ("assistant", "certainly"), ("user", "two")]


async def test_only_messages_that_fit_in_the_context_window_are_sent(
    platform: RunningPlatform, tenant_with_models: Tenant
) -> None:
    async with upstream(answering("x" * 400)) as provider:
        client, path = (
            tenant_with_models.user.client,
            await conversation_with_provider(platform, tenant_with_models, provider.url),
        )
        platform.sql("UPDATE model_configs SET context_window = 400 WHERE tenant_id = %s", [tenant_with_models.id])
        platform.touch("policy", tenant_with_models.id)
        await platform.refresh()
        for word in ("one", "two", "three", "four"):
            await client.post(f"{path}/messages", json={"content": word})
        last = json.loads(provider.requests[-1].body)["messages"]
    # Three quarters of the window are available for the prompt. A question and its answer are 109 tokens.
    assert contents(last) == [
        ("user", "two"), ("assistant", "x" * 400), ("user", "three"), ("assistant", "x" * 400), ("user", "four"),
    ]  # fmt: skip


async def test_a_redacted_value_reaches_neither_the_model_nor_the_database(
    platform: RunningPlatform, tenant_with_models: Tenant
) -> None:
    await add_dlp_rule(platform, tenant_with_models)
    async with upstream(answering(f"Your card is {CARD}.")) as provider:
        client, path = (
            tenant_with_models.user.client,
            await conversation_with_provider(platform, tenant_with_models, provider.url),
        )
        answer = await client.post(f"{path}/messages", json={"content": f"my card is {CARD}"})
        assert CARD not in str([request.body for request in provider.requests])
    assert (answer.headers["X-DLP-Action"], CARD in answer.text) == ("REDACT", False)
    assert contents(await messages_of(client, path)) == [
        ("user", "my card is [CREDIT_CARD_1]"), ("assistant", "Your card is [CREDIT_CARD_1]."),
    ]  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
async def test_a_value_that_is_restored_for_the_caller_is_stored_as_its_label(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin, stream: bool
) -> None:
    await add_dlp_rule(platform, tenant_with_models, reversible=True)
    client, path = tenant_with_models.user.client, await begin()
    answer = await client.post(f"{path}/messages", json={"content": f"my card is {CARD} ok", "stream": stream})
    shown = _streamed(answer.text) if stream else answer.json()["assistant_message"]["content"]
    assert shown == f"my card is {CARD} ok"
    kept = "my card is [CREDIT_CARD_1] ok"
    assert contents(await messages_of(client, path)) == [("user", kept), ("assistant", kept)]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_blocked_question_is_refused_like_by_the_gateway_and_not_stored(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin, stream: bool
) -> None:
    await add_dlp_rule(platform, tenant_with_models, "block")
    client, path = tenant_with_models.user.client, await begin()
    answer = await client.post(f"{path}/messages", json={"content": f"my card is {CARD}", "stream": stream})
    direct = {"model": "sandbox/echo", "messages": [{"role": "user", "content": CARD}], "stream": stream}
    as_ever = await client.post("/v1/chat/completions", json=direct)
    assert (answer.status_code, answer.headers["X-DLP-Action"]) == (403, "BLOCK")
    assert answer.json() == as_ever.json()
    assert await messages_of(client, path) == []
    assert platform.sql("SELECT count(*) FROM conversation_messages WHERE tenant_id = %s", [tenant_with_models.id]) == [
        (0,)
    ]


async def test_a_failed_provider_is_reported_and_stores_nothing(tenant_with_models: Tenant, begin: Begin) -> None:
    client, path = tenant_with_models.user.client, await begin(model="sandbox/status-503")
    answer = await client.post(f"{path}/messages", json={"content": "hello"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "all_providers_failed")
    assert await messages_of(client, path) == []
    again = await client.post(f"{path}/messages", json={"content": "hello", "model": "sandbox/echo"})
    assert [message["sequence"] for message in again.json().values()] == [1, 2]


async def test_a_kill_switch_stops_conversations_too(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin
) -> None:
    client, path = tenant_with_models.user.client, await begin()
    switch = "/api/v1/admin/kill-switch/providers/sandbox"
    off = await tenant_with_models.admin.client.post(f"{switch}/disable", json={"reason": "other"})
    assert off.status_code == 200, off.text
    refused = await client.post(f"{path}/messages", json={"content": "hello"})
    assert (refused.status_code, refused.json()["error"]["type"]) == (503, "provider_unavailable")
    await tenant_with_models.admin.client.post(f"{switch}/enable")
    assert (await client.post(f"{path}/messages", json={"content": "hello"})).status_code == 201


async def test_policy_rules_are_evaluated_for_a_post(tenant_with_models: Tenant, begin: Begin) -> None:
    rule = {"name": "none of it", "condition": "model == 'sandbox/echo'", "action": "BLOCK"}
    made = await tenant_with_models.admin.client.post("/api/admin/policies", json=rule)
    assert made.status_code == 201, made.text
    path = await begin()
    refused = await tenant_with_models.user.client.post(f"{path}/messages", json={"content": "hello"})
    assert (refused.status_code, refused.json()["error"]["rule_id"]) == (403, made.json()["id"])


async def test_a_post_is_counted_and_recorded_once_for_its_caller(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin, settings: Settings
) -> None:
    client, path = tenant_with_models.user.client, await begin()
    left = []
    for _ in range(2):
        answer = await client.post(f"{path}/messages", json={"content": "hello"})
        left.append(int(answer.headers["X-RateLimit-Remaining"]))
    assert (answer.headers["X-RateLimit-Limit"], left) == ("60", [59, 58])
    await Journal(platform.installed.url, settings.gatehouse_home / "journal").drain()
    records = platform.sql(
        "SELECT user_id, status, model_id, request_id FROM usage_records WHERE tenant_id = %s ORDER BY timestamp",
        [tenant_with_models.id],
    )
    assert [record[:3] for record in records] == [(tenant_with_models.user.id, "success", "echo")] * 2
    assert records[1][3] == answer.headers["X-Request-Id"]
    assert len(await platform.audit(tenant_with_models, "gateway.request")) == 2


async def test_the_sixty_first_post_of_a_minute_is_refused(tenant_with_models: Tenant, begin: Begin) -> None:
    client, path = tenant_with_models.user.client, await begin()
    # A malformed post is refused, but it counts nevertheless.
    for _ in range(60):
        assert (await client.post(f"{path}/messages", json={})).status_code == 422
    refused = await client.post(f"{path}/messages", json={"content": "hello"})
    assert (refused.status_code, refused.json()["error"]) == (429, "rate_limit_exceeded")
    assert (await client.get(f"{path}/messages")).status_code == 200


async def test_a_post_to_a_full_conversation_is_refused(tenant_with_models: Tenant, begin: Begin) -> None:
    client, path = tenant_with_models.user.client, await begin()
    await tenant_with_models.admin.client.put("/api/admin/config/max_conversation_messages", json={"value": "3"})
    assert (await client.post(f"{path}/messages", json={"content": "hello"})).status_code == 201
    full = await client.post(f"{path}/messages", json={"content": "hello"})
    assert (full.status_code, "max_conversation_messages" in full.json()["detail"]) == (409, True)
    assert len(await messages_of(client, path)) == 2


async def test_concurrent_posts_are_stored_in_pairs_and_within_the_limit(
    tenant_with_models: Tenant, begin: Begin
) -> None:
    client, path = tenant_with_models.user.client, await begin(model="sandbox/slow-200ms")
    await tenant_with_models.admin.client.put("/api/admin/config/max_conversation_messages", json={"value": "6"})
    answers = await asyncio.gather(
        *(client.post(f"{path}/messages", json={"content": f"number {n}"}) for n in range(5))
    )
    assert sorted(answer.status_code for answer in answers) == [201, 201, 201, 409, 409]
    kept = await messages_of(client, path)
    assert [message["sequence"] for message in kept] == [1, 2, 3, 4, 5, 6]
    for question, reply in zip(kept[::2], kept[1::2], strict=True):
        assert (question["role"], reply["role"], question["content"]) == ("user", "assistant", reply["content"])


async def test_no_connection_to_the_database_is_held_while_the_model_answers(
    platform: RunningPlatform, tenant_with_models: Tenant
) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def behave(connection: Connection) -> None:
        reached.set()
        await go_on.wait()
        await connection.answer(completion("done"))

    async with upstream(behave) as provider:
        path = await conversation_with_provider(platform, tenant_with_models, provider.url)
        free = platform.host.database.available_connections()
        post = asyncio.create_task(tenant_with_models.user.client.post(f"{path}/messages", json={"content": "hello"}))
        await asyncio.wait_for(reached.wait(), 10)
        assert platform.host.database.available_connections() == free
        assert await messages_of(tenant_with_models.user.client, path) == []
        go_on.set()
        assert (await post).status_code == 201


@pytest.mark.parametrize(
    ("silent_seconds", "is_released"), [(None, True), (WORKER_TIMEOUT_SECONDS + 5, True), (0, False)]
)
async def test_the_rows_of_a_worker_are_released_when_it_has_ended_or_is_silent_for_a_minute(
    platform: RunningPlatform,
    tenant_with_models: Tenant,
    begin: Begin,
    silent_seconds: float | None,
    is_released: bool,
) -> None:
    client, path, node = tenant_with_models.user.client, await begin(), uuid4()
    await client.post(f"{path}/messages", json={"content": "hello"})
    platform.sql(
        "UPDATE conversation_messages SET status = 'pending', content = NULL, node = %s WHERE tenant_id = %s",
        [node, tenant_with_models.id],
    )
    if silent_seconds is not None:
        # Of another kind than `gateway`, so that no change waits for its confirmation.
        platform.sql(
            "INSERT INTO nodes (id, name, kind, pid, host, seen_at)"
            " VALUES (%s, 'other', 'worker', 1, 'other', now() - make_interval(secs => %s))",
            [node, silent_seconds],
        )
    await tenant_with_models.admin.client.put("/api/admin/config/max_conversation_messages", json={"value": "2"})
    answer = await client.post(f"{path}/messages", json={"content": "again"})
    platform.sql("DELETE FROM nodes WHERE id = %s", [node])
    assert answer.status_code == (201 if is_released else 409)
    stored_messages = contents(await messages_of(client, path))
    assert stored_messages == ([("user", "again"), ("assistant", "again")] if is_released else [])


async def test_an_answer_whose_rows_were_released_replaces_nothing(
    platform: RunningPlatform, tenant_with_models: Tenant
) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def behave(connection: Connection) -> None:
        if b"slowly" in connection.body:
            reached.set()
            await go_on.wait()
        await connection.answer(completion("done"))

    client = tenant_with_models.user.client
    async with upstream(behave) as provider:
        path = await conversation_with_provider(platform, tenant_with_models, provider.url)
        first = (await client.post(f"{path}/messages", json={"content": "hello"})).json()["user_message"]
        body = {"content": "slowly", "replaces": first["id"]}
        post = asyncio.create_task(client.post(f"{path}/messages", json=body))
        await asyncio.wait_for(reached.wait(), 10)
        platform.sql(
            "DELETE FROM conversation_messages WHERE status = 'pending' AND tenant_id = %s", [tenant_with_models.id]
        )
        go_on.set()
        assert (await post).status_code == 201
    assert contents(await messages_of(client, path)) == [("user", "hello"), ("assistant", "done")]


async def test_an_answer_is_not_stored_if_its_conversation_was_deleted_meanwhile(
    platform: RunningPlatform, tenant_with_models: Tenant
) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def behave(connection: Connection) -> None:
        reached.set()
        await go_on.wait()
        await connection.answer(completion("too late"))

    async with upstream(behave) as provider:
        path = await conversation_with_provider(platform, tenant_with_models, provider.url)
        post = asyncio.create_task(tenant_with_models.user.client.post(f"{path}/messages", json={"content": "hello"}))
        await asyncio.wait_for(reached.wait(), 10)
        assert (await tenant_with_models.user.client.delete(path)).status_code == 204
        go_on.set()
        assert (await post).status_code == 201
    assert stored(platform, tenant_with_models.id) == ""


async def test_a_deletion_while_the_answer_is_stored_fails_neither(
    platform: RunningPlatform, tenant_with_models: Tenant
) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def behave(connection: Connection) -> None:
        reached.set()
        await go_on.wait()
        await connection.answer(completion("too late"))

    async with upstream(behave) as provider:
        path = await conversation_with_provider(platform, tenant_with_models, provider.url)
        post = asyncio.create_task(tenant_with_models.user.client.post(f"{path}/messages", json={"content": "hello"}))
        await asyncio.wait_for(reached.wait(), 10)
        # Like DELETE, this transaction first locks the conversation, and then deletes it with its messages.
        with psycopg.connect(platform.installed.owner_url) as deleting:
            deleting.execute("SELECT 1 FROM conversations WHERE tenant_id = %s FOR UPDATE", [tenant_with_models.id])
            go_on.set()
            async with asyncio.timeout(60):
                while platform.sql("SELECT count(*) FROM pg_locks WHERE NOT granted") == [(0,)]:
                    await asyncio.sleep(0.01)
            deleting.execute("DELETE FROM conversations WHERE tenant_id = %s", [tenant_with_models.id])
        assert (await post).status_code == 201
    assert stored(platform, tenant_with_models.id) == ""


@pytest.mark.parametrize("body", [b'{"choices": []}', b'{"choices": [{"index": 0, "message": {"content": [7]}}]}'])
@pytest.mark.parametrize("call", ["messages", "summary"])
async def test_an_unreadable_answer_is_a_providers_error_and_is_not_stored(
    platform: RunningPlatform, tenant_with_models: Tenant, call: str, body: bytes
) -> None:
    async def behave(connection: Connection) -> None:
        await connection.answer(body)

    async with upstream(behave) as provider:
        client, path = (
            tenant_with_models.user.client,
            await conversation_with_provider(platform, tenant_with_models, provider.url),
        )
        await client.post(f"{path}/messages", json={"content": "first", "model": "sandbox/echo"})
        answer = await client.post(f"{path}/{call}", json={"content": "x"} if call == "messages" else None)
    assert (answer.status_code, answer.json()["error"]["type"]) == (502, "provider_error")
    assert platform.sql("SELECT count(*) FROM conversation_messages WHERE tenant_id = %s", [tenant_with_models.id]) == [
        (2,)
    ]
    assert (await client.get(path)).json()["summary"] is None


async def test_the_answer_to_a_client_that_disconnected_is_stored(
    platform: RunningPlatform, tenant_with_models: Tenant
) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def behave(connection: Connection) -> None:
        reached.set()
        await go_on.wait()
        await connection.answer(completion("done"))

    async with upstream(behave) as provider, platform.listening() as url:
        path = await conversation_with_provider(platform, tenant_with_models, provider.url)
        headers = {"Authorization": f"Bearer {tenant_with_models.user.token}"}
        async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=60) as stranger:
            post = asyncio.create_task(stranger.post(f"{path}/messages", json={"content": "hello"}))
            await asyncio.wait_for(reached.wait(), 10)
            post.cancel()
            await asyncio.wait({post})
        go_on.set()
        async with asyncio.timeout(60):
            while not (kept := await messages_of(tenant_with_models.user.client, path)):
                await asyncio.sleep(0.01)
    assert contents(kept) == [("user", "hello"), ("assistant", "done")]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "content"),
        ({"content": ""}, "content"),
        ({"content": " \n"}, "content"),
        ({"content": ["hello"]}, "content"),
        ({"content": "a\0b"}, "content"),
        ({"content": "x", "stream": "yes"}, "stream"),
        ({"content": "x", "model": 5}, "model"),
        ({"content": "x", "temperature": 1}, "temperature"),
    ],
)
async def test_a_bad_field_is_named(tenant_with_models: Tenant, begin: Begin, body: dict[str, Any], field: str) -> None:
    path = await begin()
    answer = await tenant_with_models.user.client.post(f"{path}/messages", json=body)
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", field])


async def test_a_lone_surrogate_is_refused_and_its_field_named(tenant_with_models: Tenant, begin: Begin) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await tenant_with_models.user.client.post(
        f"{await begin()}/messages", content=b'{"content": "\\ud800"}', headers=headers
    )
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", "content"])


async def test_an_unknown_model_is_the_gateways_404(tenant_with_models: Tenant, begin: Begin) -> None:
    path = await begin()
    answer = await tenant_with_models.user.client.post(
        f"{path}/messages", json={"content": "x", "model": "nobody/nothing"}
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")


def _streamed(text: str) -> str:
    chunks = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    return "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks if chunk["choices"])
