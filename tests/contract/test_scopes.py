"""OAuth clients are judged by scopes alone: each operation is opened by the scope that is meant for it, and no other
(decisions 3). What is meant is said here once more, by path, so that a route with the wrong caller is noticed."""

import re
from typing import Final

import httpx2
import pytest
from tests.support.operations import COMMON, filled
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.identity import SCOPES

#: The first that fits counts. The second scope is for reading, the third for changing.
_MEANT: Final = [
    (r"/(v1|api)/chat/completions|/v1/(messages|embeddings|responses)", {"chat:write"}, {"chat:write"}),
    (r"/api/conversations/[^/]+/(messages|summary)", {"api:read"}, {"chat:write"}),
    (r"/v1/scan", set(), {"dlp:read"}),
    (r"/api/v1/dlp/events", {"dlp:read"}, set()),
    (r"/v1/audit/.*", {"audit:read"}, set()),
    (r"/api/admin/groups.*", {"groups:read"}, {"groups:write"}),
    # Reference 2, OAuth client: `admin:write` includes their management.
    (r"/api/admin/oauth-clients.*", {"admin:read", "admin:write"}, {"admin:write"}),
    (r"/api/admin/.*|/api/v1/admin/.*|/v1/platform/.*|/api/alerts.*", {"admin:read"}, {"admin:write"}),
    # A person's own: no client is a person.
    (r"/api/auth/.*|/api/users/me/.*", set(), set()),
    (r"/.*", {"api:read"}, {"api:write"}),
]

#: `/oauth/userinfo` tells of the person that a token is of: a machine's is as bad as none (OpenID Connect, 5.3.3).
MACHINES: Final = [(method, path) for method, path in COMMON if path != "/oauth/userinfo"]


def meant(method: str, path: str) -> set[str]:
    for pattern, reading, changing in _MEANT:
        if re.fullmatch(pattern, path):
            return reading if method == "GET" else changing
    raise AssertionError(path)


@pytest.fixture(scope="module")
async def machines(platform: RunningPlatform, somebody: Tenant) -> dict[str, httpx2.AsyncClient]:
    """A client for each scope, that has no other."""
    return {scope: await platform.new_m2m(somebody.id, scope, tier="unlimited") for scope in sorted(SCOPES)}


@pytest.mark.parametrize(("method", "path"), MACHINES)
async def test_a_scope_opens_what_it_is_meant_for_and_nothing_else(
    machines: dict[str, httpx2.AsyncClient], method: str, path: str
) -> None:
    right = meant(method, path)
    for scope, machine in machines.items():
        answer = await machine.request(method, filled(path))
        if scope not in right:
            assert answer.status_code == 403, (scope, answer.text)
        else:
            # What else is wrong is another matter: no such id, no body, operators only.
            assert answer.status_code != 401, (scope, answer.text)
            assert "lacks the scope" not in answer.text, (scope, answer.text)


async def test_a_machine_without_scopes_may_nothing(platform: RunningPlatform, somebody: Tenant) -> None:
    machine = await platform.new_m2m(somebody.id)
    for method, path in MACHINES:
        assert (await machine.request(method, filled(path))).status_code == 403, (method, path)


async def test_a_platform_wide_client_belongs_to_no_organization(platform: RunningPlatform) -> None:
    """Whatever its scopes, it has a say in clients and organizations alone (decisions 2)."""
    machine = await platform.new_m2m(None, *SCOPES, tier="unlimited")
    for method, path in MACHINES:
        answer = await machine.request(method, filled(path), json={})
        own = path.startswith(("/api/admin/oauth-clients", "/v1/platform/"))
        refused = answer.status_code == 403 and "lacks the scope" not in answer.text
        assert refused is not own, (method, path, answer.text)
