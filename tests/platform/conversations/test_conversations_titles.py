"""Titles and summaries that models generate (docs/conversations.md, "Titles and summaries")."""

import pytest
from tests.platform.conversations.conftest import CARD, Begin, add_dlp_rule, answering, messages_of, stored
from tests.support.journal import Journal
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import upstream

from gatehouse.foundation.settings import Settings
from gatehouse.platform.conversations.conversations.calls.titles import cleaned


@pytest.fixture
async def titled(tenant_with_models: Tenant) -> Tenant:
    """An organization in which titles are generated."""
    await tenant_with_models.admin.client.put("/api/admin/config/auto_title_enabled", json={"value": "true"})
    return tenant_with_models


@pytest.mark.parametrize("stream", [False, True])
async def test_the_first_answer_triggers_a_title(
    platform: RunningPlatform, titled: Tenant, begin: Begin, stream: bool
) -> None:
    client, path = titled.user.client, await begin()
    await client.post(f"{path}/messages", json={"content": "Gates of Rome\nand more", "stream": stream})
    await platform.host.later.settle()
    # The sandbox echoes the text from which the title is generated.
    assert (await client.get(path)).json()["title"] == "Gates of Rome"
    assert "Rome" not in stored(platform, titled.id)
    await client.patch(path, json={"title": None})
    await client.post(f"{path}/messages", json={"content": "Gates of Athens"})
    await platform.host.later.settle()
    assert (await client.get(path)).json()["title"] is None


async def test_an_owners_title_is_kept_without_a_model_call(
    platform: RunningPlatform, titled: Tenant, begin: Begin, settings: Settings
) -> None:
    client, path = titled.user.client, await begin(title="Mine")
    await client.post(f"{path}/messages", json={"content": "Gates of Rome"})
    await platform.host.later.settle()
    assert (await client.get(path)).json()["title"] == "Mine"
    assert await _paths(platform, titled, settings) == [f"{path}/messages"]


async def test_no_title_is_generated_if_the_setting_is_off(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin
) -> None:
    client, path = tenant_with_models.user.client, await begin()
    await client.post(f"{path}/messages", json={"content": "Gates of Rome"})
    await platform.host.later.settle()
    assert (await client.get(path)).json()["title"] is None


async def test_the_configured_model_generates_titles_through_the_pipeline(
    platform: RunningPlatform, titled: Tenant, begin: Begin, settings: Settings
) -> None:
    await add_dlp_rule(platform, titled)
    async with upstream(answering(f'"About {CARD}"\n')) as provider:
        await platform.add_provider(titled.id, "own", "openai_compatible", "m", base_url=provider.url, max_retries=0)
        await titled.admin.client.put("/api/admin/config/auto_title_model", json={"value": "own/m"})
        client, path = titled.user.client, await begin()
        await client.post(f"{path}/messages", json={"content": f"my card is {CARD}"})
        await platform.host.later.settle()
        # A value invented by the model, which saw only a label.
        assert (await client.get(path)).json()["title"] == "About [CREDIT_CARD_2]"
        assert CARD not in str([request.body for request in provider.requests])
    assert await _paths(platform, titled, settings) == [f"{path}/messages", f"{path}/title"]


@pytest.mark.parametrize("model", ["sandbox/status-503", "nobody/nothing"])
async def test_a_failed_title_does_not_affect_the_answer(
    platform: RunningPlatform, titled: Tenant, begin: Begin, model: str
) -> None:
    await titled.admin.client.put("/api/admin/config/auto_title_model", json={"value": model})
    client, path = titled.user.client, await begin()
    assert (await client.post(f"{path}/messages", json={"content": "Gates of Rome"})).status_code == 201
    await platform.host.later.settle()
    assert (await client.get(path)).json()["title"] is None


async def test_an_interrupted_answer_triggers_no_title_and_the_next_complete_one_does(
    platform: RunningPlatform, titled: Tenant, begin: Begin
) -> None:
    client, path = titled.user.client, await begin()
    await client.post(f"{path}/messages", json={"content": "a b c d", "stream": True, "model": "sandbox/cut"})
    await platform.host.later.settle()
    assert (await client.get(path)).json()["title"] is None
    await client.post(f"{path}/messages", json={"content": "Gates of Rome"})
    await platform.host.later.settle()
    assert (await client.get(path)).json()["title"] == "Gates of Rome"


@pytest.mark.parametrize(
    ("reply", "title"),
    [
        ("Gates", "Gates"),
        ('\n "Gates of Rome" \nand more', "Gates of Rome"),
        ("## **Gates**", "Gates"),
        ("a\tb\x00c", "a b c"),
        ("x" * 200, "x" * 79 + "\u2026"),
        (' "" \n', ""),
        ("", ""),
    ],
)
def test_a_title_is_reduced_to_one_short_line(reply: str, title: str) -> None:
    assert cleaned(reply) == title


async def test_a_summary_of_the_messages_is_generated_and_stored(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin
) -> None:
    client, path = tenant_with_models.user.client, await begin()
    await client.post(f"{path}/messages", json={"content": "the nightingale sings"})
    answer = await client.post(f"{path}/summary")
    assert answer.status_code == 200, answer.text
    summary = answer.json()
    assert summary["summary"] == "user: the nightingale sings\n\nassistant: the nightingale sings"
    assert (summary["model"], summary["messages"]) == ("sandbox/echo", 2)
    shown = (await client.get(path)).json()
    assert (shown["summary"], shown["summarized_at"]) == (summary["summary"], summary["summarized_at"])
    assert "nightingale" not in stored(platform, tenant_with_models.id)


async def test_the_preferred_summarizer_gets_the_stored_messages(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin
) -> None:
    await add_dlp_rule(platform, tenant_with_models, reversible=True)
    async with upstream(answering("In short: [CREDIT_CARD_1].")) as provider:
        await platform.add_provider(
            tenant_with_models.id, "own", "openai_compatible", "m", base_url=provider.url, max_retries=0
        )
        client, path = tenant_with_models.user.client, await begin()
        chosen = await client.put("/api/users/me/preferences", json={"default_summarizer_model_id": "own/m"})
        assert chosen.status_code == 200, chosen.text
        await client.post(f"{path}/messages", json={"content": f"my card is {CARD}"})
        summary = (await client.post(f"{path}/summary")).json()
        assert (summary["summary"], summary["model"]) == ("In short: [CREDIT_CARD_1].", "own/m")
        assert CARD not in str([request.body for request in provider.requests])
    assert len(await messages_of(client, path)) == 2


async def test_a_summary_goes_through_the_pipeline_and_is_recorded(
    platform: RunningPlatform, tenant_with_models: Tenant, begin: Begin, settings: Settings
) -> None:
    client, path = tenant_with_models.user.client, await begin()
    await client.post(f"{path}/messages", json={"content": "I am EMP-123456"})
    # A rule that was added later applies to earlier messages.
    await add_dlp_rule(platform, tenant_with_models, pattern="EMP-[0-9]{6}")
    summary = await client.post(f"{path}/summary")
    assert (summary.headers["X-DLP-Action"], "EMP-" in summary.text) == ("REDACT", False)
    assert await _paths(platform, tenant_with_models, settings) == [f"{path}/messages", f"{path}/summary"]


async def test_an_empty_conversation_has_no_summary(begin: Begin, tenant_with_models: Tenant) -> None:
    path = await begin()
    answer = await tenant_with_models.user.client.post(f"{path}/summary")
    assert (answer.status_code, answer.json()) == (409, {"detail": "The conversation has no messages yet."})


async def test_a_refused_summary_is_reported_and_replaces_nothing(tenant_with_models: Tenant, begin: Begin) -> None:
    client, path = tenant_with_models.user.client, await begin()
    await client.post(f"{path}/messages", json={"content": "hello"})
    first = (await client.post(f"{path}/summary")).json()["summary"]
    await client.patch(path, json={"model": "sandbox/status-503"})
    refused = await client.post(f"{path}/summary")
    assert (refused.status_code, refused.json()["error"]["code"]) == (502, "all_providers_failed")
    assert (await client.get(path)).json()["summary"] == first


async def _paths(platform: RunningPlatform, tenant: Tenant, settings: Settings) -> list[str]:
    """Return the request paths of model calls from the audit chain."""
    await Journal(platform.installed.url, settings.gatehouse_home / "journal").drain()
    return [event["details"]["path"] for event in await platform.audit(tenant, "gateway.request")]
