"""Sensitive operations require a fresh second factor (docs/mfa.md, Step-up). The tests cover every operation: a new one
that changes something requires it, or is listed here as an exception."""

import re
from time import time
from typing import Final

import pytest
from tests.support.operations import COMMON, filled
from tests.support.platform import Person, RunningPlatform

#: Operations that grant no rights: model calls, a person's own resources, and rules about calls.
_PLAIN: Final = re.compile(
    r"/api/chat/completions|/v1/(chat/completions|messages(/count_tokens)?|responses(/.*)?|embeddings|completions|moderations|rerank|images/.*|audio/.*|scan)|/v2/rerank|/api/conversations(/.*)?"
    r"|/v1/(files|batches|messages/batches)(/.*)?"
    r"|/oauth/userinfo|/api/users/me/.*|/api/admin/users/\{user_id\}/avatar|/api/admin/groups(/.*)?"
    r"|/api/admin/providers/\{provider_id\}/(config|status|health-check|health-check-config)"
    r"|/api/admin/system/check-provider/.*|/api/admin/models(/.*)?|/api/admin/approvals/.*"
    r"|/api(/admin)?/access-requests(/.*)?"
    r"|/api/admin/(compliance-bundles|compliance-bundles-export|content-filters|policies|dlp-rules|budgets)(/.*)?"
    r"|/api/admin/cost-routing/.*|/api/v1/admin/model-aliases(/.*)?"
    # A test returns only the receiver's answer.
    r"|/api(/v1)?/admin/(webhooks/\{webhook_id\}|siem)/test|/api/admin/mail/test"
    # A replay sends a stored event again to the same receiver.
    r"|/api(/v1)?/admin/webhooks/\{webhook_id\}/deliveries/\{delivery_id\}/replay"
    r"|/api/alerts(/.*)?"
    # Engaging a kill switch is never delayed.
    r"|/api/v1/admin/(kill-switch|mcp/servers)/.*/disable"
).fullmatch
#: Operations that revoke rights, or that need a second factor only for some bodies
#: (tests/platform/access/test_api_keys.py).
_PLAIN_TOO: Final = {
    ("POST", "/api/auth/logout"), ("DELETE", "/api/auth/sessions/{session_id}"),
    ("DELETE", "/api/v1/mcp/connections/{server_id}"),
    ("PATCH", "/api/auth/mfa/webauthn/{passkey_id}"),
    ("PATCH", "/api/auth/api-keys/{key_id}"), ("PATCH", "/api/admin/api-keys/{key_id}"),
}  # fmt: skip

CHANGES: Final = [(method, path) for method, path in COMMON if method != "GET"]


def sensitive(method: str, path: str) -> bool:
    return _PLAIN(path) is None and (method, path) not in _PLAIN_TOO


@pytest.fixture
async def operator(platform: RunningPlatform) -> Person:
    """An operator without a verified second factor, in an organization that requires one from everybody."""
    tenant = await platform.new_tenant()
    await platform.require_mfa(tenant.id)
    return await platform.new_person(tenant.id, "admin", operator=True)


@pytest.mark.parametrize(("method", "path"), CHANGES)
async def test_sensitive_operations_require_a_second_factor(operator: Person, method: str, path: str) -> None:
    answer = await operator.client.request(method, filled(path), json={})
    assert ("mfa_required" in answer.text, answer.status_code == 403) == (sensitive(method, path),) * 2, answer.text


@pytest.mark.parametrize("age", [0, 100_000])
async def test_the_second_factor_must_be_fresh(platform: RunningPlatform, age: int) -> None:
    tenant = await platform.new_tenant()
    await platform.require_mfa(tenant.id)
    person = await platform.new_person(tenant.id, "admin", operator=True, mfa_at=time() - age)
    for method, path in CHANGES:
        if sensitive(method, path):
            answer = await person.client.request(method, filled(path), json={})
            assert ("mfa_required" in answer.text) is (age > 0), (method, path, answer.text)
