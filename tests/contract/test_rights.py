"""Who may call what, over every operation there is: a new route is under these tests the day it is registered."""

import re
from typing import Any
from uuid import uuid4

import pytest
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.settings import Settings
from gatehouse.platform.app import administration

_DOCUMENT: dict[str, Any] = administration(Settings())[0].openapi()
_OPERATIONS = [
    (method.upper(), path)
    for path, methods in _DOCUMENT["paths"].items()
    for method in methods
    if method != "parameters"
]

#: Open to everybody by contract (reference 1, Authentication, 6), or their own credential is in the body.
OPEN = {
    "/api/auth/login", "/api/auth/register", "/api/auth/refresh", "/api/auth/password/reset", "/oauth/token",
    "/.well-known/jwks.json", "/health", "/api/health/live", "/api/health/ready", "/api/health/startup", "/metrics",
}  # fmt: skip

CLOSED = [(method, path) for method, path in _OPERATIONS if path.rstrip("/") not in OPEN]
ADMIN = [(method, path) for method, path in CLOSED if "/admin/" in path or path.startswith("/v1/platform/")]
NAMING = [(method, path) for method, path in CLOSED if re.search(r"_id}|{provider}|byoe/{id}", path)]
WRITES = [(method, path) for method, path in ADMIN if method != "GET"]


def _filled(path: str) -> str:
    return re.sub(r"\{[^}]*\}", lambda _: str(uuid4()), path)


@pytest.mark.parametrize(("method", "path"), CLOSED)
async def test_without_a_credential_it_is_401(platform: RunningPlatform, method: str, path: str) -> None:
    assert (await platform.anonymous.request(method, _filled(path))).status_code == 401


@pytest.mark.parametrize(("method", "path"), CLOSED)
async def test_with_a_made_up_key_it_is_401(platform: RunningPlatform, method: str, path: str) -> None:
    client = platform.client("gk_" + "x" * 38)
    assert (await client.request(method, _filled(path))).status_code == 401


@pytest.mark.parametrize(("method", "path"), ADMIN)
async def test_a_user_gets_403(platform: RunningPlatform, somebody: Tenant, method: str, path: str) -> None:
    assert (await somebody.user.client.request(method, _filled(path))).status_code == 403


@pytest.mark.parametrize(("method", "path"), WRITES)
async def test_an_auditor_changes_nothing(somebody: Tenant, method: str, path: str) -> None:
    assert (await somebody.auditor.client.request(method, _filled(path))).status_code == 403


@pytest.mark.parametrize(("method", "path"), WRITES)
async def test_a_reading_machine_changes_nothing(
    platform: RunningPlatform, somebody: Tenant, method: str, path: str
) -> None:
    client = await platform.new_m2m(somebody.id, "admin:read", "api:read", "api:write", "chat:write")
    assert (await client.request(method, _filled(path))).status_code == 403


@pytest.mark.parametrize(("method", "path"), NAMING)
async def test_another_organizations_id_is_404(
    platform: RunningPlatform, somebody: Tenant, theirs: dict[str, str], method: str, path: str
) -> None:
    # Tenants are the operators' affair: for them the id is one that there is not.
    client = (await platform.operator() if "{tenant_id}" in path else somebody.admin).client
    named = re.sub(r"\{([^}]*)\}", lambda found: theirs[found[1]], path)
    answer = await client.request(method, named, json=_BODIES.get(path, _ANY_BODY))
    assert answer.status_code == 404, answer.text


#: Where the row is looked for only once the body is good.
_BODIES = {
    "/api/v1/admin/kill-switch/providers/{provider}/disable": {"reason": "other"},
    "/api/v1/admin/kill-switch/models/{model_config_id}/disable": {"reason": "other"},
    "/api/admin/providers/{provider_id}/credentials": {"api_key": "sk-0123456789abcdef"},
}
_ANY_BODY: dict[str, str] = {}


@pytest.fixture(scope="module")
async def theirs(platform: RunningPlatform) -> dict[str, str]:
    """Ids of what another organization really has, by the names that paths give them."""
    other = await platform.new_tenant()
    await platform.add_provider(other.id, "their-own", "byoe", "model")
    await platform.new_key(other.user)
    made = await other.admin.client.post("/api/admin/oauth-clients/", json={"name": "a machine"})
    dlp = "/api/admin/dlp-rules"
    rule = {"detector_name": "x", "detector_type": "ner", "entity_type": "person", "action_tier": "log_only"}
    rule = (await other.admin.client.post(f"{dlp}/", json={**rule, "enabled": False})).json()
    pattern = {"name": "x", "entity_type": "x", "pattern": "x", "action_tier": "log_only"}
    pattern = (await other.admin.client.post(f"{dlp}/custom-patterns", json=pattern)).json()
    suppression = (await other.admin.client.post(f"{dlp}/suppressions", json={"pattern_id": "iban"})).json()
    group = await other.admin.client.post("/api/admin/groups", json={"name": "their own"})
    registered = await other.admin.client.post("/api/admin/models", json={"provider": "their-own", "model_id": "m"})
    bundle = {"name": "x", "regulatory_framework": "SOX", "version": "1", "seed_rule_mappings": []}
    bundle = (await other.admin.client.post("/api/admin/compliance-bundles", json=bundle)).json()
    approval_id = uuid4()
    platform.sql(
        "INSERT INTO approvals (id, tenant_id, request_id, reason, node, expires_at)"
        " VALUES (%s, %s, 'r', 'x', %s, now() + interval '1 hour')",
        [approval_id, other.id, platform.host.node.id],
    )
    words = {"name": "x", "filter_type": "keyword_block", "config": {"keywords": ["x"]}, "scope": "org", "priority": 1}
    words = (await other.admin.client.post("/api/admin/content-filters/", json=words)).json()
    policy = {"name": "x", "condition": "false", "action": "LOG"}
    policy = (await other.admin.client.post("/api/admin/policies", json=policy)).json()
    ids = {
        "filter_id": words["id"],
        "policy_id": policy["id"],
        "approval_id": approval_id,
        "bundle_id": bundle["id"],
        "rule_id": rule["id"],
        "pattern_id": pattern["id"],
        "suppression_id": suppression["id"],
        "client_id": made.json()["client_id"],
        "key_id": platform.sql("SELECT id FROM api_keys WHERE tenant_id = %s", [other.id])[0][0],
        "model_config_id": platform.sql("SELECT id FROM model_configs WHERE tenant_id = %s", [other.id])[0][0],
        "group_id": group.json()["id"],
        "registered_model_id": registered.json()["id"],
        "session_id": other.user.session_id,
        "tenant_id": uuid4(),
        "user_id": other.user.id,
        **dict.fromkeys(("id", "provider", "provider_id"), "their-own"),
    }
    return {name: str(value) for name, value in ids.items()}


@pytest.fixture(scope="module")
async def somebody(platform: RunningPlatform) -> Tenant:
    return await platform.new_tenant()
