"""Every operation of the OpenAPI document refuses unknown query parameters by name and treats malformed ids like
unknown ones."""

import re

import pytest
from tests.contract.conftest import Furnished
from tests.support.operations import COMMON, DOCUMENT
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.ingress.gateway import GATEWAY_PATHS
from gatehouse.platform.administration.contents import ANY_PARAMETERS

STRICT = [
    (method, path)
    for method, path in COMMON
    if not path.startswith((*ANY_PARAMETERS, "/v1/models", "/v1/responses")) and path not in GATEWAY_PATHS
]
#: Path parameters that are ids. Slugs, names and addresses cannot be malformed.
WITH_ID = [
    (method, path)
    for method, path in COMMON
    if any(
        parameter["in"] == "path" and parameter["schema"].get("format") == "uuid"
        for parameter in DOCUMENT["paths"][path][method.lower()].get("parameters", ())
    )
]
#: Operations for which the contract defines another answer to a malformed id.
OWN_WORD = "/api/admin/compliance/bundles/{bundle_id}/stats"


@pytest.mark.parametrize(("method", "path"), STRICT)
async def test_an_unknown_query_parameter_is_refused_by_name(furnished: Furnished, method: str, path: str) -> None:
    url = furnished.path(path.replace("{flag_name}", "dlp_enabled").replace("{key}", "LOG_LEVEL"))
    body = None if method == "GET" else {}
    answer = await furnished.tenant.admin.client.request(method, url, params={"nobodys_parameter": "1"}, json=body)
    if answer.status_code not in {401, 403, 404}:
        assert answer.status_code in {400, 422}, answer.text
        assert "nobodys_parameter" in answer.text


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_unauthorized_callers_get_no_parameter_errors(
    furnished: Furnished, somebody: Tenant, platform: RunningPlatform, method: str
) -> None:
    unknown = {"nobodys_parameter": "1"}
    group = furnished.path("/api/admin/groups/{group_id}")
    assert (await platform.anonymous.request(method, group, params=unknown)).status_code == 401
    assert (await somebody.user.client.request(method, group, params=unknown)).status_code == 403
    assert (await somebody.admin.client.request(method, group, params=unknown)).status_code == 404


async def test_a_change_with_an_unknown_parameter_is_not_made(furnished: Furnished, platform: RunningPlatform) -> None:
    admin = furnished.tenant.admin.client
    group = furnished.path("/api/admin/groups/{group_id}")
    before = (await admin.get(group)).json()
    for method in ("PUT", "DELETE"):
        refused = await admin.request(method, group, params={"dryrun": "1"}, json={"name": "Renamed"})
        assert (refused.status_code, "dryrun" in refused.text) == (422, True), refused.text
    assert (await admin.get(group)).json() == before


async def test_the_gateway_and_protocols_ignore_unknown_parameters(
    furnished: Furnished, platform: RunningPlatform
) -> None:
    key = await platform.new_key(furnished.tenant.admin)
    headers = {"Authorization": f"Bearer {key}"}
    for path in ("/v1/models", "/.well-known/jwks.json", "/api/health/live", "/api/saml/metadata"):
        answer = await platform.anonymous.get(path, params={"beta": "true"}, headers=headers)
        assert answer.status_code == (await platform.anonymous.get(path, headers=headers)).status_code, path


@pytest.mark.parametrize(
    ("query", "name", "headers"),
    [
        ({"page": "1", "limit": "5"}, "page", {"X-API-Variant": "a"}),
        ({"page": "1", "limit": "5"}, "limit", {"X-API-Variant": "b"}),
    ],
)
async def test_a_list_refuses_the_other_variants_parameters(
    furnished: Furnished, query: dict[str, str], name: str, headers: dict[str, str]
) -> None:
    answer = await furnished.tenant.admin.client.get("/api/admin/oauth-clients/", params=query, headers=headers)
    assert answer.status_code == 422, answer.text
    assert [fault["loc"] for fault in answer.json()["detail"]] == [["query", name]]


@pytest.mark.parametrize(("method", "path"), WITH_ID)
async def test_a_malformed_id_is_answered_like_an_unknown_one(furnished: Furnished, method: str, path: str) -> None:
    operation = DOCUMENT["paths"][path][method.lower()]
    for parameter in operation["parameters"]:
        if parameter["in"] != "path" or parameter["schema"].get("format") != "uuid":
            continue
        url = furnished.path(path.replace(f"{{{parameter['name']}}}", "nope"))
        assert "nope" in url
        answer = await furnished.tenant.admin.client.request(method, url, json={})
        if path == OWN_WORD:
            assert answer.status_code == 400
            continue
        # These operations may refuse the caller with their own status before the id is looked up.
        assert answer.status_code in ({403, 404} if path.startswith("/v1/platform") else {404}), answer.text
        assert not re.search("uuid|UUID", answer.text), answer.text


async def test_a_parameter_that_both_variants_have_is_named_once(furnished: Furnished) -> None:
    answer = await furnished.tenant.admin.client.get("/api/admin/models/catalog", params={"page": "0"})
    assert answer.status_code == 422
    assert [fault["loc"] for fault in answer.json()["detail"]] == [["query", "page"]]
