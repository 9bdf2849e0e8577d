"""Labels of redacted values: within a conversation, a label always stands for the same value."""

import json

from tests.platform.conversations.conftest import (
    CARD,
    Begin,
    add_dlp_rule,
    answering,
    contents,
    conversation_with_provider,
    messages_of,
)
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import upstream

OTHER = "5555 5555 5555 4444"
THIRD = "4000 0566 5566 5556"


async def test_a_label_of_an_earlier_message_is_not_used_for_a_later_value(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin
) -> None:
    await add_dlp_rule(platform, tenant_with_models, reversible=True)
    client, path = tenant_with_models.user.client, await begin()
    await client.post(f"{path}/messages", json={"content": f"first {CARD}"})
    await client.post(f"{path}/messages", json={"content": f"then {OTHER}"})
    assert contents(await messages_of(client, path))[2:] == [
        ("user", "then [CREDIT_CARD_2]"), ("assistant", "then [CREDIT_CARD_2]"),
    ]  # fmt: skip


async def test_labels_of_answers_get_numbers_after_those_of_earlier_turns(
    platform: RunningPlatform, tenant_with_models: Tenant
) -> None:
    await add_dlp_rule(platform, tenant_with_models)
    async with upstream(answering(f"one is {OTHER}", f"another is {THIRD}, or {OTHER}")) as provider:
        client, path = (
            tenant_with_models.user.client,
            await conversation_with_provider(platform, tenant_with_models, provider.url),
        )
        await client.post(f"{path}/messages", json={"content": f"mine is {CARD}"})
        answer = await client.post(f"{path}/messages", json={"content": "and another?"})
        shown = json.loads(provider.requests[-1].body)["messages"]
    text = "another is [CREDIT_CARD_3], or [CREDIT_CARD_4]"
    assert answer.json()["assistant_message"]["content"] == text
    assert contents(await messages_of(client, path))[-1] == ("assistant", text)
    assert contents(shown)[:2] == [("user", "mine is [CREDIT_CARD_1]"), ("assistant", "one is [CREDIT_CARD_2]")]


async def test_labels_that_the_model_no_longer_sees_are_not_reused(
    platform: RunningPlatform, tenant_with_models: Tenant
) -> None:
    await add_dlp_rule(platform, tenant_with_models, reversible=True)
    async with upstream(answering("x" * 400, "[CREDIT_CARD_1] or [CREDIT_CARD_2]?")) as provider:
        client, path = (
            tenant_with_models.user.client,
            await conversation_with_provider(platform, tenant_with_models, provider.url),
        )
        platform.sql("UPDATE model_configs SET context_window = 150 WHERE tenant_id = %s", [tenant_with_models.id])
        platform.touch("policy", tenant_with_models.id)
        await platform.refresh()
        await client.post(f"{path}/messages", json={"content": f"mine is {CARD}"})
        answer = await client.post(f"{path}/messages", json={"content": f"or {OTHER}"})
        shown = json.loads(provider.requests[-1].body)["messages"]
    assert contents(shown) == [("user", "or [CREDIT_CARD_2]")]
    # The value of an earlier turn's label is unknown, and the label is not replaced by another value.
    assert answer.json()["assistant_message"]["content"] == f"[CREDIT_CARD_1] or {OTHER}?"
    assert contents(await messages_of(client, path))[-1] == ("assistant", "[CREDIT_CARD_1] or [CREDIT_CARD_2]?")


async def test_the_numbers_of_labels_never_decrease(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin
) -> None:
    await add_dlp_rule(platform, tenant_with_models)
    client, path = tenant_with_models.user.client, await begin()
    for content in (f"{CARD} and {OTHER}", "nothing", THIRD):
        await client.post(f"{path}/messages", json={"content": content})
    kept = [message["content"] for message in await messages_of(client, path) if message["role"] == "user"]
    assert kept == ["[CREDIT_CARD_1] and [CREDIT_CARD_2]", "nothing", "[CREDIT_CARD_3]"]
    query = "SELECT label_numbers FROM conversations WHERE tenant_id = %s"
    assert platform.sql(query, [tenant_with_models.id]) == [({"CREDIT_CARD": 3},)]


async def test_a_summary_does_not_reuse_labels_of_the_conversation(
    platform: RunningPlatform, tenant_with_models: Tenant
) -> None:
    await add_dlp_rule(platform, tenant_with_models)
    async with upstream(answering("noted", f"They said {OTHER}.")) as provider:
        client, path = (
            tenant_with_models.user.client,
            await conversation_with_provider(platform, tenant_with_models, provider.url),
        )
        await client.post(f"{path}/messages", json={"content": f"mine is {CARD}"})
        summary = await client.post(f"{path}/summary")
    assert summary.json()["summary"] == "They said [CREDIT_CARD_2]."
