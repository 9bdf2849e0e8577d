"""Labels of redacted values: within a conversation, a label always stands for the same value."""

import json

from tests.platform.conversations.conftest import (
    CARD,
    Begin,
    answering,
    contents,
    messages_of,
    of_own,
    redacting,
)
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import upstream

OTHER = "5555 5555 5555 4444"
THIRD = "4000 0566 5566 5556"


async def test_a_label_of_an_earlier_message_never_stands_for_a_later_value(
    platform: RunningPlatform, talking: Tenant, begin: Begin
) -> None:
    await redacting(platform, talking, reversible=True)
    client, path = talking.user.client, await begin()
    await client.post(f"{path}/messages", json={"content": f"first {CARD}"})
    await client.post(f"{path}/messages", json={"content": f"then {OTHER}"})
    assert contents(await messages_of(client, path))[2:] == [
        ("user", "then [CREDIT_CARD_2]"), ("assistant", "then [CREDIT_CARD_2]"),
    ]  # fmt: skip


async def test_values_of_answers_are_numbered_after_those_of_earlier_turns(
    platform: RunningPlatform, talking: Tenant
) -> None:
    await redacting(platform, talking)
    async with upstream(answering(f"one is {OTHER}", f"another is {THIRD}, or {OTHER}")) as provider:
        client, path = talking.user.client, await of_own(platform, talking, provider.url)
        await client.post(f"{path}/messages", json={"content": f"mine is {CARD}"})
        answer = await client.post(f"{path}/messages", json={"content": "and another?"})
        shown = json.loads(provider.requests[-1].body)["messages"]
    text = "another is [CREDIT_CARD_3], or [CREDIT_CARD_4]"
    assert answer.json()["assistant_message"]["content"] == text
    assert contents(await messages_of(client, path))[-1] == ("assistant", text)
    assert contents(shown)[:2] == [("user", "mine is [CREDIT_CARD_1]"), ("assistant", "one is [CREDIT_CARD_2]")]


async def test_labels_that_the_model_is_not_shown_any_more_are_not_given_again(
    platform: RunningPlatform, talking: Tenant
) -> None:
    await redacting(platform, talking, reversible=True)
    async with upstream(answering("x" * 400, "[CREDIT_CARD_1] or [CREDIT_CARD_2]?")) as provider:
        client, path = talking.user.client, await of_own(platform, talking, provider.url)
        platform.sql("UPDATE model_configs SET context_window = 150 WHERE tenant_id = %s", [talking.id])
        platform.touch("policy", talking.id)
        await platform.refresh()
        await client.post(f"{path}/messages", json={"content": f"mine is {CARD}"})
        answer = await client.post(f"{path}/messages", json={"content": f"or {OTHER}"})
        shown = json.loads(provider.requests[-1].body)["messages"]
    assert contents(shown) == [("user", "or [CREDIT_CARD_2]")]
    # The value of an earlier turn's label is unknown, and the label is not replaced by another value.
    assert answer.json()["assistant_message"]["content"] == f"[CREDIT_CARD_1] or {OTHER}?"
    assert contents(await messages_of(client, path))[-1] == ("assistant", "[CREDIT_CARD_1] or [CREDIT_CARD_2]?")


async def test_the_numbers_of_labels_never_go_back(platform: RunningPlatform, talking: Tenant, begin: Begin) -> None:
    await redacting(platform, talking)
    client, path = talking.user.client, await begin()
    for content in (f"{CARD} and {OTHER}", "nothing", THIRD):
        await client.post(f"{path}/messages", json={"content": content})
    kept = [message["content"] for message in await messages_of(client, path) if message["role"] == "user"]
    assert kept == ["[CREDIT_CARD_1] and [CREDIT_CARD_2]", "nothing", "[CREDIT_CARD_3]"]
    query = "SELECT label_numbers FROM conversations WHERE tenant_id = %s"
    assert platform.sql(query, [talking.id]) == [({"CREDIT_CARD": 3},)]


async def test_a_summary_gives_no_label_of_the_conversation_to_another_value(
    platform: RunningPlatform, talking: Tenant
) -> None:
    await redacting(platform, talking)
    async with upstream(answering("noted", f"They said {OTHER}.")) as provider:
        client, path = talking.user.client, await of_own(platform, talking, provider.url)
        await client.post(f"{path}/messages", json={"content": f"mine is {CARD}"})
        summary = await client.post(f"{path}/summary")
    assert summary.json()["summary"] == "They said [CREDIT_CARD_2]."
