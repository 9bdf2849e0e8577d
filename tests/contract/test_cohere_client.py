"""The stock Cohere client's reranking, with the built-in sandbox provider."""

import asyncio
from typing import Any

import cohere
import pytest
from cohere.core import ApiError
from tests.support.platform import RunningPlatform, Tenant

CARD = "4242 4242 4242 4242"
DOCUMENTS = ["a closed door", f"the open gate of {CARD}"]


@pytest.fixture
async def tenant_with_rerank(platform: RunningPlatform, tenant: Tenant) -> Tenant:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "rerank", max_retries=0)
    return tenant


@pytest.mark.parametrize("kind", [cohere.ClientV2, cohere.Client])
async def test_the_client_reranks(platform: RunningPlatform, tenant_with_rerank: Tenant, kind: Any) -> None:
    key = await platform.new_key(tenant_with_rerank.user)
    async with platform.listening() as url:
        client = kind(key, base_url=url)
        fields = {"model": "sandbox/rerank", "query": f"open gate {CARD}", "documents": DOCUMENTS, "top_n": 2}
        answer = await asyncio.to_thread(client.rerank, **fields)
    assert [result.index for result in answer.results] == [1, 0]
    assert answer.results[0].relevance_score > answer.results[1].relevance_score


async def test_the_client_of_version_1_receives_redacted_documents(
    platform: RunningPlatform, tenant_with_rerank: Tenant
) -> None:
    key = await platform.new_key(tenant_with_rerank.user)
    async with platform.listening() as url:
        answer = await asyncio.to_thread(
            cohere.Client(key, base_url=url).rerank,
            model="sandbox/rerank", query="open gate", documents=DOCUMENTS, return_documents=True,
        )  # fmt: skip
    documents = [result.document.text for result in answer.results if result.document is not None]
    assert documents == ["the open gate of [CREDIT_CARD_1]", "a closed door"]


async def test_the_client_receives_the_gateways_error(platform: RunningPlatform, tenant_with_rerank: Tenant) -> None:
    key = await platform.new_key(tenant_with_rerank.user)
    async with platform.listening() as url:
        client = cohere.ClientV2(key, base_url=url)
        with pytest.raises(ApiError) as not_served:
            await asyncio.to_thread(
                client.chat, model="sandbox/echo", messages=[cohere.UserChatMessageV2(content="Hello")]
            )
        with pytest.raises(ApiError) as unknown:
            await asyncio.to_thread(client.rerank, model="sandbox/none", query="a", documents=["b"])
    assert (not_served.value.status_code, unknown.value.status_code) == (404, 404)
    assert "/v1/chat/completions" in str(not_served.value.body)
