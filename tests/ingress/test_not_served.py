"""Paths of model APIs that clients get wrong: aliases without `/v1`, APIs that are not offered, unknown paths."""

import openai
import pytest
from tests.support.platform import RunningPlatform, Tenant

CHAT = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture(scope="module")
async def key(platform: RunningPlatform) -> str:
    """A key of a user whose organization has one model."""
    tenant = await platform.new_tenant()
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo")
    return await platform.new_key(tenant.user)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/chat/completions", CHAT),
        ("/chat/completions/", CHAT),
        ("/messages", {**CHAT, "max_tokens": 10}),
        ("/responses", {"model": "sandbox/echo", "input": "Hello"}),
        ("/embeddings", {"model": "sandbox/embed", "input": "Hello"}),
    ],
)
async def test_paths_without_v1_have_the_same_answers_as_paths_with_v1(
    platform: RunningPlatform, path: str, body: dict[str, object]
) -> None:
    tenant = await platform.new_tenant()
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo", "embed")
    client = platform.client(await platform.new_key(tenant.user))
    short, full = await client.post(path, json=body), await client.post("/v1" + path, json=body)
    assert short.status_code == full.status_code == 200, short.text
    assert short.json().keys() == full.json().keys()
    refused = await platform.anonymous.post(path, json=body)
    assert refused.json() == (await platform.anonymous.post("/v1" + path, json=body)).json()


async def test_models_are_listed_and_shown_without_v1(platform: RunningPlatform, key: str) -> None:
    client = platform.client(key)
    assert (await client.get("/models")).json() == (await client.get("/v1/models")).json()
    assert (await client.get("/models/sandbox/echo")).json()["id"] == "sandbox/echo"
    assert (await client.get("/models/nothing")).json()["error"]["code"] == "model_not_found"


async def test_openais_client_without_v1_in_its_base_url_works(platform: RunningPlatform, key: str) -> None:
    async with platform.listening() as url, openai.AsyncOpenAI(base_url=url, api_key=key, max_retries=0) as client:
        answer = await client.chat.completions.create(
            model="sandbox/echo", messages=[{"role": "user", "content": "Hello"}]
        )
        assert "Hello" in (answer.choices[0].message.content or "")
        assert [model.id async for model in client.models.list()] == ["sandbox/echo"]


@pytest.mark.parametrize(
    ("method", "path", "named"),
    [
        ("POST", "/v1/videos", "videos"),
        ("POST", "/v1/images/search", "this operation on images"),
        ("POST", "/v1/audio/voices", "this operation on audio"),
        ("GET", "/v1/files/file-1/parts", "this operation on files"),
        ("GET", "/v1/batches/batch_1/lines", "this operation on batches"),
        ("POST", "/v1/responses/resp_1/cancel", "this operation on responses"),
        ("GET", "/v1/vector_stores", "vector stores"),
        ("POST", "/v2/chat", "Cohere's chats"),
        ("POST", "/v1/chat", "Cohere's chats"),
        ("POST", "/v2/embed", "Cohere's embeddings"),
    ],
)
async def test_an_api_that_is_not_offered_is_named(
    platform: RunningPlatform, key: str, method: str, path: str, named: str
) -> None:
    answer = await platform.client(key).request(method, path, json={})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["type"]) == (404, "not_served", "invalid_request_error")
    assert f"Gatehouse does not serve {named}" in error["message"]
    assert "POST /v1/chat/completions" in error["message"]


async def test_an_unknown_path_of_coheres_api_has_the_format_of_errors_of_models(
    platform: RunningPlatform, key: str
) -> None:
    answer = await platform.client(key).post("/v2/files", json={})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_path")
    refused = await platform.client(key).get("/v2/rerank")
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")


async def test_openais_client_shows_the_message_about_an_api_that_is_not_offered(
    platform: RunningPlatform, key: str
) -> None:
    async with (
        platform.listening() as url,
        openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as client,
    ):
        with pytest.raises(openai.NotFoundError, match="Gatehouse does not serve vector stores"):
            await client.vector_stores.list()


async def test_the_error_of_an_unknown_path_lists_supported_paths(platform: RunningPlatform, key: str) -> None:
    answer = await platform.client(key).post("/v1/chats", json={})
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "unknown_path"
    assert "GET /v1/models" in answer.json()["error"]["message"]


async def test_a_path_with_v1_twice_is_explained(platform: RunningPlatform, key: str) -> None:
    answer = await platform.client(key).post("/v1/v1/messages", json={})
    assert answer.json()["type"] == "error"
    assert "base URL without `/v1`" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/v1/messages/batches/x/y", {}),
        ("/v1/complete", {}),
        ("/v1/complete/x", {}),
        ("/complete", {}),
        ("/v1/images", {"anthropic-version": "2023-06-01"}),
    ],
)
async def test_anthropics_clients_receive_anthropics_error_format(
    platform: RunningPlatform, key: str, path: str, headers: dict[str, str]
) -> None:
    answer = await platform.client(key).get(path, headers=headers)
    assert answer.status_code == 404
    assert (answer.json()["type"], answer.json()["error"]["code"]) == ("error", "not_served")


async def test_another_method_is_405_and_names_the_right_one(platform: RunningPlatform) -> None:
    answer = await platform.anonymous.get("/chat/completions")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["error"]["code"] == "method_not_allowed"


@pytest.mark.parametrize("path", ["/v1/audit/nothing", "/v1/platform/nothing", "/api/nothing", "/nothing"])
async def test_unknown_paths_of_administration_have_administrations_error_format(tenant: Tenant, path: str) -> None:
    answer = await tenant.admin.client.get(path)
    assert (answer.status_code, answer.json()) == (404, {"detail": "Not found"})


async def test_a_long_path_is_cut_in_the_message(platform: RunningPlatform) -> None:
    answer = await platform.anonymous.get("/v1/" + "x" * 5000)
    assert len(answer.text) < 1000
