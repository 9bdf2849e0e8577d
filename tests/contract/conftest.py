"""Organizations for the tests over all operations: as callers, and as owners of the called rows."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from tests.support.operations import filled
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.egress.guard import EgressGuard
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.outbound.carriers import Carrier, open_outbound
from gatehouse.foundation.secrets.owned_ids import KeptObject

#: The HTTP clients for calls to providers. Answers and records must not depend on the choice.
CARRIERS: tuple[Carrier, ...] = ("lean", "aiohttp")
CarriedBy = Callable[[Carrier], AbstractAsyncContextManager[None]]


@pytest.fixture
def carried_by(platform: RunningPlatform) -> CarriedBy:
    """Return a context in which the platform uses this HTTP client for calls to providers."""

    @asynccontextmanager
    async def carried_by(carrier: Carrier) -> AsyncIterator[None]:
        before, platform.host.ports.outbound = platform.host.ports.outbound, open_outbound(carrier, 100, EgressGuard())
        try:
            yield
        finally:
            carrying, platform.host.ports.outbound = platform.host.ports.outbound, before
            await carrying.close()

    return carried_by


@pytest.fixture(params=CARRIERS)
async def carrier(request: pytest.FixtureRequest, carried_by: CarriedBy) -> AsyncIterator[Carrier]:
    """Run the test once with each HTTP client."""
    async with carried_by(request.param):
        yield request.param


def certificate() -> str:
    """Return a self-signed certificate in PEM."""
    key, name = rsa.generate_private_key(65537, 2048), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "idp.test")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=9)
    )
    return builder.sign(key, SHA256()).public_bytes(Encoding.PEM).decode()


@dataclass
class Furnished:
    """An organization with one row of every kind. `ids` has their ids by the name of the path parameter. If two paths
    use one name for different rows, the id for the rarer path is in `others`, by the path."""

    tenant: Tenant
    ids: dict[str, str]
    others: dict[str, dict[str, str]]

    def path(self, path: str) -> str:
        """Return the path with the ids of existing rows."""
        return filled(path, {**self.ids, **self.others.get(path, {})})


async def files_and_batches(tenant: Tenant) -> tuple[str, str, str]:
    """Create a file, a batch of it and a message batch of the organization's administrator. Return their ids."""
    client, call = tenant.admin.client, {"model": "none", "messages": [{"role": "user", "content": "x"}]}
    line = {"custom_id": "x", "method": "POST", "url": "/v1/chat/completions", "body": call}
    files = {"file": ("x.jsonl", json.dumps(line).encode())}
    file = (await client.post("/v1/files", data={"purpose": "batch"}, files=files)).json()
    batch = {"input_file_id": file["id"], "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    batch = (await client.post("/v1/batches", json=batch)).json()
    requests = [{"custom_id": "x", "params": {**call, "max_tokens": 1}}]
    message_batch = (await client.post("/v1/messages/batches", json={"requests": requests})).json()
    return file["id"], batch["id"], message_batch["id"]


async def mcp_server(platform: RunningPlatform, tenant: Tenant) -> dict[str, Any]:
    """Register an MCP server with a tool and an access rule. Return their ids by the names of the path parameters."""
    servers, tool_id = "/api/v1/admin/mcp/servers", uuid4()
    server = (await tenant.admin.client.post(servers, json={"name": "x", "url": "https://8.8.8.8/mcp"})).json()
    platform.sql(
        "INSERT INTO mcp_tools (id, tenant_id, server_id, name, status, definition, hash)"
        " VALUES (%s, %s, %s, 'x', 'quarantined', '{}', 'x')",
        [tool_id, tenant.id, server["id"]],
    )
    rule = {"subject_type": "user", "subject_id": str(tenant.user.id), "access_type": "ALLOW"}
    rule = (await tenant.admin.client.post(f"{servers}/{server['id']}/access", json=rule)).json()
    connection_id = uuid4()
    platform.sql(
        "INSERT INTO mcp_connections (id, tenant_id, server_id, user_id, server_url, client_id, token_url)"
        " VALUES (%s, %s, %s, %s, 'https://8.8.8.8/mcp', 'x', 'https://8.8.8.8/token')",
        [connection_id, tenant.id, server["id"], tenant.user.id],
    )
    return {
        "server_id": server["id"], "tool_id": tool_id, "access_rule_id": rule["id"], "connection_id": connection_id,
    }  # fmt: skip


@pytest.fixture(scope="module")
async def somebody(platform: RunningPlatform) -> Tenant:
    """An organization without rows."""
    return await platform.new_tenant()


@pytest.fixture(scope="module")
async def furnished(platform: RunningPlatform) -> Furnished:
    other = await platform.new_tenant()
    await platform.add_provider(other.id, "their-own", "byoe", "model")
    await platform.new_key(other.user)
    oauth_client = await other.admin.client.post("/api/admin/oauth-clients/", json={"name": "a machine"})
    dlp = "/api/admin/dlp-rules"
    rule = {"detector_name": "x", "detector_type": "ner", "entity_type": "person", "action_tier": "log_only"}
    rule = (await other.admin.client.post(f"{dlp}/", json={**rule, "enabled": False})).json()
    pattern = {"name": "x", "entity_type": "x", "pattern": "x", "action_tier": "log_only"}
    pattern = (await other.admin.client.post(f"{dlp}/custom-patterns", json=pattern)).json()
    suppression = (await other.admin.client.post(f"{dlp}/suppressions", json={"pattern_id": "iban"})).json()
    group = await other.admin.client.post("/api/admin/groups", json={"name": "their own"})
    credential = {"label": "second", "api_key": "sk-of-their-own"}
    await other.admin.client.post("/api/admin/providers/their-own/credentials", json=credential)
    access = {"model_id": "their-own/model", "access_type": "ALLOW"}
    await other.admin.client.post(f"/api/admin/groups/{group.json()['id']}/model-access", json=access)
    overrides = [{"entity_type": "email", "action": "BLOCK"}]
    await other.admin.client.put(f"/api/admin/groups/{group.json()['id']}/dlp", json=overrides)
    registered = await other.admin.client.post("/api/admin/models", json={"provider": "their-own", "model_id": "m"})
    bundle = {"name": "x", "regulatory_framework": "SOX", "version": "1", "seed_rule_mappings": []}
    bundle = (await other.admin.client.post("/api/admin/compliance-bundles", json=bundle)).json()
    approval_id = uuid4()
    platform.sql(
        "INSERT INTO approvals (id, tenant_id, request_id, reason, node, expires_at)"
        " VALUES (%s, %s, 'r', 'x', %s, now() + interval '1 hour')",
        [approval_id, other.id, platform.host.node.id],
    )
    access_request = {"kind": "limit", "period": "month", "limit_requests": 1, "reason": "x"}
    access_request = (await other.admin.client.post("/api/access-requests", json=access_request)).json()
    words = {"name": "x", "filter_type": "keyword_block", "config": {"keywords": ["x"]}, "scope": "org", "priority": 1}
    words = (await other.admin.client.post("/api/admin/content-filters/", json=words)).json()
    policy = {"name": "x", "condition": "false", "action": "LOG"}
    policy = (await other.admin.client.post("/api/admin/policies", json=policy)).json()
    budget = {"scope_type": "tenant", "period": "month", "limit_requests": 1_000_000}
    budget = (await other.admin.client.post("/api/admin/budgets", json=budget)).json()
    webhook = {"name": "x", "url": "https://8.8.8.8/", "events": ["dlp_trigger"], "secret": "of their own"}
    webhook = (await other.admin.client.post("/api/admin/webhooks/", json=webhook)).json()
    delivery_id = uuid4()
    platform.sql(
        "INSERT INTO webhook_deliveries (id, tenant_id, webhook_id, event_type, payload, status, next_attempt_at)"
        " VALUES (%s, %s, %s, 'dlp_trigger', '{}', 'dead_letter', NULL)",
        [delivery_id, other.id, webhook["id"]],
    )
    routing = {"name": "x", "strategy": "cost_optimized"}
    routing = (await other.admin.client.post("/api/admin/cost-routing/policies", json=routing)).json()
    idp = {"name": "x", "entity_id": "https://idp.test", "sso_url": "https://idp.test/", "x509_cert": certificate()}
    idp = (await other.admin.client.post("/api/admin/saml/idp", json=idp)).json()
    conversations = "/api/conversations"
    conversation = (await other.admin.client.post(conversations, json={"title": "x"})).json()
    link = (await other.admin.client.post(f"{conversations}/{conversation['id']}/share_links")).json()
    token = (await other.admin.client.post("/api/admin/scim/token", json={"description": "x"})).json()
    siem = {"type": "syslog_tcp", "host": "1.1.1.1", "port": 514, "enabled": False}
    await other.admin.client.put("/api/v1/admin/siem", json=siem)
    domain = f"{uuid4().hex}.test"
    await other.admin.client.post("/api/v1/admin/org/allowed-domains", json={"domain": domain})
    passkey_id = uuid4()
    platform.sql(
        "INSERT INTO mfa_passkeys (id, tenant_id, user_id, credential_id, public_key, sign_count, name, synced)"
        " VALUES (%s, %s, %s, '', '', 0, 'x', false)",
        [passkey_id, other.id, other.user.id],
    )
    sample_id = uuid4()
    platform.sql(
        "INSERT INTO dlp_samples (id, tenant_id, request_id, timestamp, texts, characters, sealed_key, contents)"
        " VALUES (%s, %s, 'r', now(), 1, 1, 'x', 'x')",
        [sample_id, other.id],
    )
    record_id = new_id()
    platform.sql(
        "INSERT INTO usage_records (tenant_id, id, timestamp, request_id, status, stream)"
        " VALUES (%s, %s, now(), 'r', 'success', false)",
        [other.id, record_id],
    )
    entry = platform.sql("SELECT provider, model_id FROM model_configs WHERE tenant_id = %s", [other.id])[0]
    alias = {"name": "fast", "deployments": [{"provider": entry[0], "model_id": entry[1]}]}
    file_id, batch_id, message_batch_id = await files_and_batches(other)
    ids = {
        "file_id": file_id,
        "batch_id": batch_id,
        "message_batch_id": message_batch_id,
        "record_id": record_id,
        "domain": domain,
        "sample_id": sample_id,
        "component": "database",
        "idp_id": idp["id"],
        "conversation_id": conversation["id"],
        "token_id": link["id"],
        "passkey_id": passkey_id,
        "filter_id": words["id"],
        "policy_id": policy["id"],
        "budget_id": budget["id"],
        "webhook_id": webhook["id"],
        "delivery_id": delivery_id,
        "approval_id": approval_id,
        "access_request_id": access_request["id"],
        "bundle_id": bundle["id"],
        "rule_id": rule["id"],
        "pattern_id": pattern["id"],
        "suppression_id": suppression["id"],
        "client_id": oauth_client.json()["client_id"],
        "key_id": platform.sql("SELECT id FROM api_keys WHERE tenant_id = %s", [other.id])[0][0],
        **dict.fromkeys(("model", "model_id"), access["model_id"]),
        "model_config_id": platform.sql("SELECT id FROM model_configs WHERE tenant_id = %s", [other.id])[0][0],
        "group_id": group.json()["id"],
        "registered_model_id": registered.json()["id"],
        "session_id": other.user.session_id,
        "response_id": platform.host.ports.owned_ids.response_id(
            f"{other.id}/{other.user.id}".encode(), KeptObject("their-own", "model", "resp_1")
        ),
        "tenant_id": uuid4(),
        "user_id": other.user.id,
        "server": "weather",
        **dict.fromkeys(("id", "provider", "provider_id"), "their-own"),
        "label": "second",
        "model_alias_id": (await other.admin.client.post("/api/v1/admin/model-aliases", json=alias)).json()["id"],
    }
    ids |= await mcp_server(platform, other)
    alert = {"name": "x", "metric_type": "cost", "threshold": 1, "comparison": "gt", "window_minutes": 1}
    alert = {"rule_id": (await other.admin.client.post("/api/alerts", json=alert)).json()["id"]}
    others = {
        "/api/admin/scim/tokens/{token_id}": {"token_id": token["token_id"]},
        "/api/admin/cost-routing/policies/{policy_id}": {"policy_id": routing["policy_id"]},
        **dict.fromkeys(("/api/alerts/{rule_id}", "/api/alerts/{rule_id}/history"), alert),
    }
    return Furnished(other, {name: str(value) for name, value in ids.items()}, others)
