"""A post that replaces the newest question and its answer."""

import asyncio
import json
from uuid import uuid4

import pytest
from tests.platform.conversations.conftest import (
    Begin,
    answering,
    contents,
    conversation_with_provider,
    messages_of,
)
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import upstream


async def test_another_answer_takes_the_place_of_the_newest_one(
    platform: RunningPlatform, tenant_with_models: Tenant
) -> None:
    client = tenant_with_models.user.client
    async with upstream(answering("first", "second", "third")) as provider:
        path = await conversation_with_provider(platform, tenant_with_models, provider.url)
        await client.post(f"{path}/messages", json={"content": "one"})
        replaced = (await client.post(f"{path}/messages", json={"content": "two"})).json()["user_message"]
        body = {"content": replaced["content"], "replaces": replaced["id"]}
        answer = await client.post(f"{path}/messages", json=body)
        assert answer.status_code == 201, answer.text
        sent = json.loads(provider.requests[-1].body)["messages"]
    # The model does not get the replaced question and answer.
    assert contents(sent) == [("user", "one"), ("assistant", "first"), ("user", "two")]
    stored = await messages_of(client, path)
    assert contents(stored) == [("user", "one"), ("assistant", "first"), ("user", "two"), ("assistant", "third")]
    assert stored[2:] == [answer.json()["user_message"], answer.json()["assistant_message"]]
    assert (await client.get(path)).json()["message_count"] == 4


@pytest.mark.parametrize("stream", [False, True])
async def test_the_question_can_be_changed_and_streamed(tenant_with_models: Tenant, begin: Begin, stream: bool) -> None:
    client, path = tenant_with_models.user.client, await begin()
    posted = (await client.post(f"{path}/messages", json={"content": "Rome"})).json()
    body = {"content": "Milan", "replaces": posted["user_message"]["id"], "stream": stream}
    answer = await client.post(f"{path}/messages", json=body)
    assert answer.is_success, answer.text
    assert contents(await messages_of(client, path)) == [("user", "Milan"), ("assistant", "Milan")]


async def test_a_refused_question_replaces_nothing(tenant_with_models: Tenant, begin: Begin) -> None:
    client, path = tenant_with_models.user.client, await begin()
    posted = (await client.post(f"{path}/messages", json={"content": "Rome"})).json()
    for model, stream in (("sandbox/status-503", False), ("sandbox/status-503", True), ("sandbox/unknown", False)):
        body = {"content": "x", "model": model, "stream": stream, "replaces": posted["user_message"]["id"]}
        assert not (await client.post(f"{path}/messages", json=body)).is_success
    assert contents(await messages_of(client, path)) == [("user", "Rome"), ("assistant", "Rome")]


async def test_only_the_newest_question_of_the_same_conversation_can_be_replaced(
    tenant_with_models: Tenant, begin: Begin
) -> None:
    client, path, other = tenant_with_models.user.client, await begin(), await begin()
    first = (await client.post(f"{path}/messages", json={"content": "one"})).json()
    second = (await client.post(f"{path}/messages", json={"content": "two"})).json()
    elsewhere = (await client.post(f"{other}/messages", json={"content": "elsewhere"})).json()
    for message_id in (
        first["user_message"]["id"],
        second["assistant_message"]["id"],
        elsewhere["user_message"]["id"],
        str(uuid4()),
    ):
        answer = await client.post(f"{path}/messages", json={"content": "x", "replaces": message_id})
        assert (answer.status_code, answer.json()["detail"][0]["loc"][-1]) == (422, "replaces")
    assert len(await messages_of(client, path)) == 4
    answer = await client.post(f"{path}/messages", json={"content": "x", "replaces": "the last one"})
    assert (answer.status_code, "replaces" in answer.text) == (422, True)


async def test_concurrent_requests_replace_a_question_once(tenant_with_models: Tenant, begin: Begin) -> None:
    client, path = tenant_with_models.user.client, await begin(model="sandbox/slow-200ms")
    posted = (await client.post(f"{path}/messages", json={"content": "one"})).json()
    body = {"content": "two", "replaces": posted["user_message"]["id"]}
    answers = await asyncio.gather(*(client.post(f"{path}/messages", json=body) for _ in range(3)))
    assert sorted(answer.status_code for answer in answers) == [201, 422, 422]
    assert len(await messages_of(client, path)) == 2


async def test_a_full_conversation_allows_another_answer(tenant_with_models: Tenant, begin: Begin) -> None:
    client, path = tenant_with_models.user.client, await begin()
    limit = await tenant_with_models.admin.client.put(
        "/api/admin/config/max_conversation_messages", json={"value": "2"}
    )
    assert limit.is_success, limit.text
    posted = (await client.post(f"{path}/messages", json={"content": "one"})).json()
    assert (await client.post(f"{path}/messages", json={"content": "two"})).status_code == 409
    body = {"content": "two", "replaces": posted["user_message"]["id"]}
    assert (await client.post(f"{path}/messages", json=body)).status_code == 201
    assert contents(await messages_of(client, path)) == [("user", "two"), ("assistant", "two")]
