"""Two concurrent changes of the same row do not overwrite each other unnoticed (`ETag`, `If-Match`; RFC 9110, 13.1.1).

The tests cover every operation that returns a row: if the answer has an `ETag`, each change of the row accepts it as
`If-Match`."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.contract.conftest import Furnished
from tests.support.operations import ADMIN, COMMON, DOCUMENT
from tests.support.platform import RunningPlatform, Tenant

CHANGES = {"PUT", "PATCH", "DELETE"}
#: Paths that return and change a row or an organization's settings.
CHANGEABLE = [
    path
    for way, path in COMMON
    # A stored response belongs to a provider, which is not part of these tests.
    if way == "GET" and path != "/v1/responses/{response_id}" and any((change, path) in COMMON for change in CHANGES)
]
#: Paths that two administrators do not edit: a person's own resources, and sessions, which end by themselves.
UNVERSIONED = {
    "/api/users/me/preferences", "/api/admin/users/{user_id}/sessions", "/v1/files/{file_id}",
    "/v1/messages/batches/{message_batch_id}",
}  # fmt: skip
#: Paths without a version of their own whose changes check the version of the row above: the user.
VERSION_OF_PARENT = {"/api/admin/users/{user_id}/sessions"}


async def shown(furnished: Furnished, path: str) -> httpx2.Response:
    answer = await furnished.tenant.admin.client.get(furnished.path(path))
    assert answer.status_code == 200, answer.text
    return answer


@pytest.mark.parametrize("path", CHANGEABLE)
async def test_answers_of_changeable_resources_have_a_version(furnished: Furnished, path: str) -> None:
    assert ("etag" in (await shown(furnished, path)).headers) is (path not in UNVERSIONED)


@pytest.mark.parametrize(
    ("method", "path"),
    [(method, path) for path in CHANGEABLE for method in sorted(CHANGES) if (method, path) in COMMON],
)
def test_the_document_offers_if_match_where_it_is_checked(method: str, path: str) -> None:
    parameters = DOCUMENT["paths"][path][method.lower()].get("parameters", [])
    offered = [parameter for parameter in parameters if parameter["name"] == "If-Match"]
    assert len(offered) == (path not in UNVERSIONED or path in VERSION_OF_PARENT)


@pytest.mark.parametrize("path", [path for path in CHANGEABLE if path not in UNVERSIONED])
async def test_a_change_of_another_version_is_412_and_changes_nothing(furnished: Furnished, path: str) -> None:
    before = await shown(furnished, path)
    for method in sorted(CHANGES):
        if (method, path) not in COMMON:
            continue
        for stale in ('"0"', f'"{uuid4().hex}"', 'W/"0"', '"0", "1"', "0"):
            answer = await furnished.tenant.admin.client.request(
                method, str(before.url), json={}, headers={"If-Match": stale}
            )
            assert answer.status_code == 412, (method, stale, answer.text)
    after = await shown(furnished, path)
    assert (after.json(), after.headers["etag"]) == (before.json(), before.headers["etag"])


@pytest.mark.parametrize("path", [path for path in CHANGEABLE if path not in UNVERSIONED])
async def test_a_change_of_the_present_version_is_accepted(furnished: Furnished, path: str) -> None:
    for method in ("PUT", "PATCH"):
        if (method, path) in COMMON:
            answer_with_etag = await shown(furnished, path)
            for named in ("{}", "*", '"0", {}', "W/{}"):
                version = {"If-Match": named.replace("{}", answer_with_etag.headers["etag"])}
                answer = await furnished.tenant.admin.client.request(
                    method, str(answer_with_etag.url), json={}, headers=version
                )
                # An empty change may be invalid, but its version is right.
                assert answer.status_code in {200, 400, 422}, answer.text
                answer_with_etag = await shown(furnished, path)


@pytest.mark.parametrize("path", [path for path in CHANGEABLE if ("GET", path) in ADMIN])
async def test_rights_are_checked_before_the_version(
    furnished: Furnished, somebody: Tenant, platform: RunningPlatform, path: str
) -> None:
    """401, 403 and 404 come before 412."""
    stale = {"If-Match": '"0"'}
    for method in sorted(CHANGES):
        if (method, path) not in COMMON:
            continue
        named = furnished.path(path)
        assert (await platform.anonymous.request(method, named, json={}, headers=stale)).status_code == 401
        assert (await somebody.user.client.request(method, named, json={}, headers=stale)).status_code == 403
        if "{" in path:
            answer = await somebody.admin.client.request(method, named, json={}, headers=stale)
            assert answer.status_code == 404, answer.text


#: Two changes of different fields, like those of two administrators who have the same page open.
RACES: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("PUT", "/api/admin/groups/{group_id}", {"name": "first"}, {"description": "second"}),
    ("PATCH", "/api/admin/users/{user_id}", {"display_name": "first"}, {"username": "second"}),
    ("PATCH", "/api/admin/api-keys/{key_id}", {"description": "first"}, {"is_enabled": False}),
    ("PATCH", "/api/admin/oauth-clients/{client_id}", {"name": "first"}, {"scopes": ["api:read"]}),
    ("PUT", "/api/admin/content-filters/{filter_id}", {"name": "first"}, {"priority": 2}),
    ("PUT", "/api/admin/policies/{policy_id}", {"name": "first"}, {"description": "second"}),
    ("PUT", "/api/admin/budgets/{budget_id}", {"limit_tokens": 10**9}, {"limit_usd": 5}),
    (
        "PATCH",
        "/api/admin/cost-routing/policies/{policy_id}",
        {"strategy": "balanced"},
        {"latency_budget_ms": 900},
    ),
    ("PUT", "/api/v1/admin/model-aliases/{model_alias_id}", {"sticky": True}, {"description": "second"}),
    ("PUT", "/api/alerts/{rule_id}", {"name": "first"}, {"threshold": 2.5}),
    ("PUT", "/api/admin/dlp-rules/{rule_id}", {"detector_name": "first"}, {"enabled": True}),
    ("PUT", "/api/admin/models/catalog/{model_config_id}", {"display_name": "first"}, {"context_window": 2}),
    ("PUT", "/api/admin/saml/idp/{idp_id}", {"name": "first"}, {"slo_url": "https://idp.test/second"}),
    ("PUT", "/api/v1/admin/org/settings", {"display_name": "first"}, {"contact_email": "second@example.test"}),
    ("PUT", "/api/v1/admin/org/session-policy", {"session_timeout_minutes": 60}, {"refresh_token_ttl_days": 2}),
    (
        "PUT",
        "/api/v1/admin/siem",
        {"type": "syslog_tcp", "host": "1.1.1.1", "port": 515},
        {"enabled": True},
    ),
    ("PUT", "/api/v1/admin/org/mfa-policy", {"grace_period_hours": 1}, {"mfa_assertion_ttl_seconds": 61}),
]


@pytest.mark.parametrize(("method", "path", "one", "other"), RACES)
async def test_of_two_concurrent_changes_one_is_refused_and_none_is_lost(
    furnished: Furnished, method: str, path: str, one: dict[str, Any], other: dict[str, Any]
) -> None:
    answer_with_etag = await shown(furnished, path)
    admin, url, version = (
        furnished.tenant.admin.client,
        str(answer_with_etag.url),
        {"If-Match": answer_with_etag.headers["etag"]},
    )
    answers = await asyncio.gather(*(admin.request(method, url, json=body, headers=version) for body in (one, other)))
    assert sorted(answer.status_code for answer in answers) == [200, 412], [answer.text for answer in answers]
    won, lost = (one, other) if answers[0].status_code == 200 else (other, one)
    after = await shown(furnished, path)
    assert won.items() <= after.json().items()
    assert {name: answer_with_etag.json()[name] for name in lost}.items() <= after.json().items()
    # The administrator with the refused change reads the row again, and can then make the change too.
    again = await admin.request(method, url, json=lost, headers={"If-Match": after.headers["etag"]})
    assert again.status_code == 200, again.text
    assert (await shown(furnished, path)).json().items() >= {**one, **other}.items()
    assert again.headers["etag"] == (await shown(furnished, path)).headers["etag"]
