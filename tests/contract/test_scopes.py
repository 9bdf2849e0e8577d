"""OAuth clients are authorized by scopes alone: each operation accepts the scope meant for it, and no other
(docs/authentication.md, OAuth clients). The expected scopes are repeated here by path, so that a route with the wrong
caller fails."""

import re
from typing import Final

import httpx2
import pytest
from tests.support.operations import COMMON, filled
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.identity import SCOPES

#: Path, scopes that read, scopes that change. The first row whose path matches applies.
_EXPECTED_SCOPES: Final = [
    (
        r"/(v1|api)/chat/completions|/v1/(messages(/count_tokens)?|embeddings|completions|moderations|rerank|images/.*|audio/.*|responses(/.*)?)|/v2/rerank",
        {"chat:write"},
        {"chat:write"},
    ),
    (r"/v1/(files|batches|messages/batches)(/.*)?", {"chat:write"}, {"chat:write"}),
    (r"/api/conversations/[^/]+/(messages|summary)", {"api:read"}, {"chat:write"}),
    (r"/v1/scan", set(), {"dlp:read"}),
    (r"/api/v1/dlp/events", {"dlp:read"}, set()),
    (r"/v1/audit/.*", {"audit:read"}, set()),
    (r"/api/admin/groups.*", {"groups:read"}, {"groups:write"}),
    # `admin:write` includes the management of OAuth clients (docs/authentication.md).
    (r"/api/admin/oauth-clients.*", {"admin:read", "admin:write"}, {"admin:write"}),
    (r"/api/admin/.*|/api/v1/admin/.*|/v1/platform/.*|/api/alerts.*", {"admin:read"}, {"admin:write"}),
    # Operations on a person's own account, which OAuth clients do not have.
    (r"/api/auth/.*|/api/users/me/.*", set(), set()),
    (r"/.*", {"api:read"}, {"api:write"}),
]

#: `/oauth/userinfo` describes the person of a token, so a machine's token is 401 there (OpenID Connect, 5.3.3).
MACHINES: Final = [(method, path) for method, path in COMMON if path != "/oauth/userinfo"]


def expected_scopes(method: str, path: str) -> set[str]:
    for pattern, reading, changing in _EXPECTED_SCOPES:
        if re.fullmatch(pattern, path):
            return reading if method == "GET" else changing
    raise AssertionError(path)


@pytest.fixture(scope="module")
async def machines(platform: RunningPlatform, somebody: Tenant) -> dict[str, httpx2.AsyncClient]:
    """One client for each scope, which has only that scope."""
    return {scope: await platform.new_m2m(somebody.id, scope, tier="unlimited") for scope in sorted(SCOPES)}


@pytest.mark.parametrize(("method", "path"), MACHINES)
async def test_an_operation_accepts_only_its_own_scopes(
    machines: dict[str, httpx2.AsyncClient], method: str, path: str
) -> None:
    expected = expected_scopes(method, path)
    for scope, machine in machines.items():
        answer = await machine.request(method, filled(path))
        if scope not in expected:
            assert answer.status_code == 403, (scope, answer.text)
        else:
            # Other refusals are fine here: unknown id, no body, operators only.
            assert answer.status_code != 401, (scope, answer.text)
            assert "lacks the scope" not in answer.text, (scope, answer.text)


async def test_a_machine_without_scopes_is_refused_everywhere(platform: RunningPlatform, somebody: Tenant) -> None:
    machine = await platform.new_m2m(somebody.id)
    for method, path in MACHINES:
        assert (await machine.request(method, filled(path))).status_code == 403, (method, path)


async def test_a_platform_wide_client_belongs_to_no_organization(platform: RunningPlatform) -> None:
    """With any scopes, a platform-wide client can only manage clients and organizations (docs/authentication.md)."""
    machine = await platform.new_m2m(None, *SCOPES, tier="unlimited")
    for method, path in MACHINES:
        answer = await machine.request(method, filled(path), json={})
        own = path.startswith(("/api/admin/oauth-clients", "/v1/platform/"))
        refused = answer.status_code == 403 and "lacks the scope" not in answer.text
        assert refused is not own, (method, path, answer.text)
