"""The paths of MCP servers as OAuth 2.1 protected resources (docs/mcp.md)."""

from typing import Any

import httpx2
import pytest
from tests.support.mcp_servers import ALL, BASE, call, grant, register, scripted_server, send
from tests.support.platform import RunningPlatform, Tenant

PUBLIC = "https://gateway.example.com"
METADATA = "/.well-known/oauth-protected-resource"
SCOPES = ("mcp:call", "api:read", "chat:write", "admin:read")


@pytest.fixture
def public(platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch) -> RunningPlatform:
    """The platform with a public address."""
    settings = platform.host.settings.model_copy(update={"public_url": f"{PUBLIC}/"})
    monkeypatch.setattr(platform.host, "settings", settings)
    monkeypatch.setattr(platform.host, "issuer", PUBLIC)
    return platform


@pytest.fixture
async def servers(tenant: Tenant) -> Any:
    """Two servers, of which the first may be used by every client."""
    async with scripted_server() as upstream:
        for name in ("mail", "weather"):
            server = await register(tenant, upstream.url, name, access="open")
            await grant(tenant, server, tenant.user.id)
        yield upstream


def limited(platform: RunningPlatform, tenant: Tenant, client: httpx2.AsyncClient, audience: Any) -> httpx2.AsyncClient:
    """Return a client with the token of an OAuth client for an audience."""
    (row,) = platform.sql("SELECT client_id FROM oauth_clients WHERE tenant_id = %s", [tenant.id])
    scope = " ".join(SCOPES)
    claims = {"sub": str(row[0]), "token_type": "m2m", "scope": scope, "tid": str(tenant.id), "aud": audience}
    return platform.client(platform.signed(claims))


@pytest.mark.parametrize("path", ["/mcp", "/mcp/weather", "/mcp/there-is-none"])
async def test_the_metadata_names_the_authorization_server(public: RunningPlatform, path: str) -> None:
    answer = await public.anonymous.get(METADATA + path)
    assert answer.json() == {
        "resource": PUBLIC + path,
        "authorization_servers": [PUBLIC],
        "scopes_supported": ["openid", "mcp:call"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Gatehouse MCP gateway",
    }
    provider = (await public.anonymous.get("/.well-known/openid-configuration")).json()
    assert (provider["issuer"], "registration_endpoint" in provider) == (PUBLIC, False)
    assert {"openid", "mcp:call"} <= set(provider["scopes_supported"])


async def test_other_paths_have_no_metadata(public: RunningPlatform) -> None:
    for path in ("", "/v1/models", "/mcp/Weather", "/mcp/a/b", "/mcp/%2e%2e"):
        assert (await public.anonymous.get(METADATA + path)).status_code == 404


async def test_without_a_public_address_there_is_no_metadata(platform: RunningPlatform, servers: Any) -> None:
    assert (await platform.anonymous.get(f"{METADATA}/mcp")).status_code == 404
    answer = await send(platform.anonymous, "weather", "tools/list")
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")


async def test_a_refused_credential_is_told_where_the_metadata_is(
    platform: RunningPlatform, tenant: Tenant, servers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform.host.ports, "public_url", PUBLIC)
    for name, path in (("weather", "/mcp/weather"), (ALL, "/mcp"), ("none", "/mcp/none")):
        place = f'resource_metadata="{PUBLIC}{METADATA}{path}"'
        answer = await send(platform.anonymous, name, "tools/list")
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, f"Bearer {place}")
        answer = await send(platform.client("gk_wrong"), name, "tools/list")
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (
            401,
            f'Bearer error="invalid_token", {place}',
        )
    reader = await platform.new_m2m(tenant.id, "api:read")
    answer = await send(reader, "weather", "tools/list")
    expected = (
        f'Bearer error="insufficient_scope", scope="mcp:call", resource_metadata="{PUBLIC}{METADATA}/mcp/weather"'
    )
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (403, expected)


@pytest.mark.parametrize(("scope", "may_chat"), [("mcp:call", False), ("chat:write", True)])
async def test_a_token_needs_the_scope_for_tools_or_that_for_models(
    platform: RunningPlatform, tenant: Tenant, servers: Any, scope: str, may_chat: bool
) -> None:
    client = await platform.new_m2m(tenant.id, scope)
    assert (await call(client, "weather", "echo")).status_code == 200
    chat = {"model": "none/none", "messages": [{"role": "user", "content": "a"}]}
    assert ((await client.post("/v1/chat/completions", json=chat)).status_code != 403) == may_chat


async def test_a_token_for_one_server_is_valid_at_its_path_only(
    platform: RunningPlatform, tenant: Tenant, servers: Any
) -> None:
    client = await platform.new_m2m(tenant.id, *SCOPES)
    issuer = platform.host.issuer
    for audience, expected in (
        (issuer, {"mail": 200, "weather": 200, ALL: 200}),
        (f"{issuer}/mcp", {"mail": 200, "weather": 200, ALL: 200}),
        (f"{issuer}/mcp/weather", {"mail": 401, "weather": 200, ALL: 401}),
        (f"{issuer}/mcp/none", {"mail": 401, "weather": 401, ALL: 401}),
        ("https://other.example.com/mcp/weather", {"mail": 401, "weather": 401, ALL: 401}),
        (["x", f"{issuer}/mcp/weather"], {"mail": 401, "weather": 401, ALL: 401}),
    ):
        other = limited(platform, tenant, client, audience)
        # In both orders, because verified tokens are cached.
        for name in (*expected, *reversed(expected)):
            assert (await send(other, name, "tools/list")).status_code == expected[name], (audience, name)
        for method, path in (("GET", "/v1/models"), ("POST", "/v1/chat/completions"), ("GET", BASE)):
            status = (await other.request(method, path)).status_code
            assert (status == 401) == (audience != issuer), (audience, path)
        assert (await send(other, "weather", "tools/list")).status_code == expected["weather"]


async def test_the_token_endpoint_limits_a_token_to_a_resource(
    platform: RunningPlatform, tenant: Tenant, servers: Any
) -> None:
    body = {"name": "agent", "scopes": ["mcp:call"]}
    answer = await tenant.admin.client.post("/api/admin/oauth-clients/", json=body)
    assert answer.status_code == 201, answer.text
    created = answer.json()
    issuer = platform.host.issuer
    form = {
        "grant_type": "client_credentials",
        "client_id": created["client_id"],
        "client_secret": created["client_secret"],
    }
    for resource, expected in (
        (None, (200, 200)),
        (issuer, (200, 200)),
        (f"{issuer}/mcp", (200, 200)),
        (f"{issuer}/mcp/weather", (200, 401)),
    ):
        fields = form if resource is None else {**form, "resource": resource}
        answer = await platform.anonymous.post("/oauth/token", data=fields)
        assert answer.status_code == 200, answer.text
        agent = platform.client(answer.json()["access_token"])
        statuses = [(await send(agent, name, "tools/list")).status_code for name in ("weather", "mail")]
        assert tuple(statuses) == expected, resource
    for resource in ("https://other.example.com", f"{issuer}/v1", f"{issuer}/mcp/A", f"{issuer}x/mcp"):
        answer = await platform.anonymous.post("/oauth/token", data={**form, "resource": resource})
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_target")
