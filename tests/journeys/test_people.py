"""Removed users over four workers, with a stock client: their sessions, keys and share links become invalid on all
workers with the answer. Credentials that they created for machines stay valid."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx2
import openai
import pytest
from tests.support.pages import forms_of
from tests.support.server import GatehouseServer

USERS = "/api/admin/users"
PASSWORD = "correct horse battery staple"
MESSAGES: Any = [{"role": "user", "content": "hi"}]
#: Concurrent calls, each on its own connection, so that all workers get some.
CALLS = 24


async def answered(fleet: GatehouseServer, credential: str) -> set[int]:
    """Return the statuses of a stock client's calls."""

    async def call() -> int:
        # Uses the alias, because the fleet limits the other path.
        async with openai.AsyncOpenAI(base_url=f"{fleet.url}/api", api_key=credential, max_retries=0) as client:
            try:
                await client.chat.completions.create(model="up/steady", messages=MESSAGES)
            except openai.APIStatusError as error:
                return error.status_code
            return 200

    return set(await asyncio.gather(*(call() for _ in range(CALLS))))


async def read(fleet: GatehouseServer, path: str, cookies: dict[str, str] | None = None) -> set[tuple[int, bool]]:
    """Return the results of a browser's calls: the status, and whether somebody is signed in."""

    async def call() -> tuple[int, bool]:
        async with httpx2.AsyncClient(base_url=fleet.url, cookies=cookies, timeout=60) as client:
            answer = await client.get(path)
            return answer.status_code, "You are signed in" in answer.text

    return set(await asyncio.gather(*(call() for _ in range(CALLS))))


async def in_a_browser(fleet: GatehouseServer, email: str) -> dict[str, str]:
    """Sign in at the page and return the cookies."""
    async with httpx2.AsyncClient(base_url=fleet.url, timeout=60) as client:
        form = forms_of(await client.get("/login"))[0]
        answer = await client.post(form.action, data=form.fields | {"email": email, "password": PASSWORD})
        assert answer.status_code == 303, answer.text
        return dict(client.cookies)


async def person(admin: httpx2.AsyncClient, role: str = "user") -> tuple[str, dict[str, Any]]:
    """Create a user who signs in. Return the user's id and the answer to the sign-in."""
    email = f"{role}-{uuid4().hex[:10]}@example.test"
    response = await admin.post(USERS, json={"email": email, "password": PASSWORD, "role": role})
    assert response.status_code == 201, response.text
    return response.json()["id"], await signed_in(admin, email)


async def signed_in(admin: httpx2.AsyncClient, email: str) -> dict[str, Any]:
    answer = await admin.post("/api/auth/login", json={"email": email, "password": PASSWORD})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def own(admin: httpx2.AsyncClient, token: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Create a resource with this session."""
    answer = await admin.post(path, json=body, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 201, answer.text
    response_body: dict[str, Any] = answer.json()
    return response_body


@pytest.mark.parametrize("verb", ["deactivate", "delete"])
async def test_a_removed_member_is_refused_on_every_worker_with_the_response(
    fleet: GatehouseServer, admin: httpx2.AsyncClient, verb: str
) -> None:
    user_id, session = await person(admin)
    token = session["access_token"]
    key = (await own(admin, token, "/api/auth/api-keys", {"description": "x"}))["api_key"]
    conversation = await own(admin, token, "/api/conversations", {"title": "x"})
    link = await own(admin, token, f"/api/conversations/{conversation['id']}/share_links", {})
    shared = "/api/conversations/shared/" + link["url"].rpartition("/")[2]
    cookies = await in_a_browser(fleet, session["user"]["email"])
    assert await answered(fleet, token) == await answered(fleet, key) == {200}
    assert (await read(fleet, shared), await read(fleet, "/login", cookies)) == ({(200, False)}, {(200, True)})
    if verb == "delete":
        assert (await admin.delete(f"{USERS}/{user_id}")).status_code == 204
    else:
        assert (await admin.patch(f"{USERS}/{user_id}", json={"is_active": False})).status_code == 200
    assert await answered(fleet, token) == await answered(fleet, key) == {401}
    assert (await read(fleet, shared), await read(fleet, "/login", cookies)) == ({(404, False)}, {(200, False)})
    renewed = await admin.post("/api/auth/refresh", json={"refresh_token": session["refresh_token"]})
    assert renewed.status_code == 401
    if verb == "deactivate":
        assert (await admin.patch(f"{USERS}/{user_id}", json={"is_active": True})).status_code == 200
        # When the user is activated again, keys and links are valid again, but ended sessions are not.
        assert await answered(fleet, key) == {200}
        assert await answered(fleet, token) == {401}
        assert (await read(fleet, shared), await read(fleet, "/login", cookies)) == ({(200, False)}, {(200, False)})
        await admin.delete(f"{USERS}/{user_id}")


async def test_credentials_of_machines_stay_valid_after_their_administrator_is_removed(
    fleet: GatehouseServer, admin: httpx2.AsyncClient
) -> None:
    user_id, session = await person(admin, "admin")
    expected = {"name": "a machine", "scopes": ["chat:write"], "rate_limit_tier": "unlimited"}
    client = await own(admin, session["access_token"], "/api/admin/oauth-clients", expected)
    assert client["created_by"] == user_id
    form = {"grant_type": "client_credentials", **{name: client[name] for name in ("client_id", "client_secret")}}
    token = (await admin.post("/oauth/token", data=form)).json()["access_token"]
    assert await answered(fleet, token) == {200}
    assert (await admin.delete(f"{USERS}/{user_id}")).status_code == 204
    assert await answered(fleet, token) == {200}
    assert await answered(fleet, (await admin.post("/oauth/token", data=form)).json()["access_token"]) == {200}
    oauth_client_body = (await admin.get(f"/api/admin/oauth-clients/{client['client_id']}")).json()
    assert oauth_client_body["created_by"] is None
    await admin.delete(f"/api/admin/oauth-clients/{client['client_id']}")
