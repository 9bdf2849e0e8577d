"""The answer of a read can be written back: every PUT and PATCH of a resource accepts the whole answer of its GET.

The tests cover the OpenAPI document in each variant. Unchanged read-only fields are accepted; changed read-only fields
and unknown fields are refused by name."""

from typing import Any

import httpx2
import pytest
from tests.contract.conftest import Furnished
from tests.support.operations import COMMON

from gatehouse.platform.administration.contents import MOVING_FIELDS

#: The list of credentials is read at the path where the default one is set.
_LISTS = {"/api/admin/providers/{provider_id}/credentials"}
UPDATES = [
    (method, path)
    for method, path in COMMON
    if method in {"PUT", "PATCH"} and ("GET", path) in COMMON and path not in _LISTS
]
#: An organization's settings, and rows with an id, in each variant.
CASES = [(method, path, variant) for method, path in UPDATES for variant in ("a", "b", "c")]
READ_ONLY = {"id", "tenant_id", "org_id", "created_at", "updated_at", "policy_id"}
#: Settings that have none of these read-only fields.
WITHOUT_READ_ONLY = {
    "/api/admin/groups/{group_id}/dlp", "/api/users/me/preferences", "/api/v1/admin/org/dlp-sampling",
    "/api/v1/admin/org/ip-allowlist", "/api/v1/admin/org/mfa-policy", "/api/v1/admin/org/request-fields",
    "/api/v1/admin/org/session-policy", "/api/v1/admin/retention/legal-hold", "/api/v1/admin/retention/policy",
}  # fmt: skip


class Resource:
    def __init__(self, furnished: Furnished, method: str, path: str, variant: str) -> None:
        self.client = furnished.tenant.admin.client
        self.method, self.url = method, furnished.path(path)
        self.headers = {"X-API-Variant": variant}

    async def read(self) -> Any:
        answer = await self.client.get(self.url, headers=self.headers)
        if answer.json() == {"active": False, "reason": None, "set_by": None, "set_at": None}:
            await self.write({"reason": "a legal hold is a resource while there is one"})
            answer = await self.client.get(self.url, headers=self.headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def write(self, body: Any) -> httpx2.Response:
        return await self.client.request(self.method, self.url, json=body, headers=self.headers)


def steady(resource_body: Any) -> Any:
    """Return the answer without the fields that each update changes."""
    if isinstance(resource_body, dict):
        return {name: value for name, value in resource_body.items() if name not in {*MOVING_FIELDS, "updated_at"}}
    return resource_body


def with_field(resource_body: Any, name: str, value: Any) -> Any:
    """Return the answer with one field set; in an array, that of its first entry."""
    return (
        [{**resource_body[0], name: value}, *resource_body[1:]]
        if isinstance(resource_body, list)
        else {**resource_body, name: value}
    )


@pytest.mark.parametrize(("method", "path", "variant"), CASES)
async def test_the_whole_answer_of_a_read_is_accepted_and_changes_nothing(
    furnished: Furnished, method: str, path: str, variant: str
) -> None:
    resource = Resource(furnished, method, path, variant)
    resource_body = await resource.read()
    answer = await resource.write(resource_body)
    assert answer.status_code == 200, (resource_body, answer.text)
    assert steady(await resource.read()) == steady(resource_body)


@pytest.mark.parametrize(("method", "path", "variant"), CASES)
async def test_an_unknown_field_is_refused_by_name(furnished: Furnished, method: str, path: str, variant: str) -> None:
    resource = Resource(furnished, method, path, variant)
    resource_body = await resource.read()
    answer = await resource.write(with_field(resource_body, "nobodys_field", None))
    assert answer.status_code in {400, 422}
    assert "nobodys_field" in answer.text
    assert await resource.read() == resource_body


def other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str() if value[:2] == "20" and "T" in value:
            return "1999" + value[4:]
        case str():
            return value + "x"
        case _:
            return "changed"


@pytest.mark.parametrize(("method", "path", "variant"), [case for case in CASES if case[1] not in WITHOUT_READ_ONLY])
async def test_a_changed_read_only_field_is_refused_by_name(
    furnished: Furnished, method: str, path: str, variant: str
) -> None:
    resource = Resource(furnished, method, path, variant)
    resource_body = await resource.read()
    row = resource_body[0] if isinstance(resource_body, list) else resource_body
    names = READ_ONLY & row.keys()
    assert names
    for name in sorted(names):
        answer = await resource.write(with_field(resource_body, name, other(row[name])))
        assert answer.status_code in {400, 422}, (name, answer.text)
        assert name in answer.text
    assert await resource.read() == resource_body


#: Resources that are shown at another path than the one that changes them: in a list, or as a part of a larger
#: resource.
ELSEWHERE: list[tuple[str, str, str, tuple[str, ...]]] = [
    ("PATCH", "/api/admin/api-keys/{key_id}", "/api/admin/api-keys", ("{key_id}",)),
    (
        "PUT",
        "/api/admin/dlp-rules/custom-patterns/{pattern_id}",
        "/api/admin/dlp-rules/custom-patterns",
        ("{pattern_id}",),
    ),
    ("PATCH", "/api/admin/providers/{provider_id}/config", "/api/admin/providers/{provider_id}", ("config",)),
    (
        "PUT",
        "/api/admin/providers/{provider_id}/health-check-config",
        "/api/admin/providers/{provider_id}",
        ("health_check_config",),
    ),
    ("PATCH", "/api/admin/providers/byoe/{id}", "/api/admin/providers/{id}", ()),
    ("PATCH", "/api/v1/admin/org/allowed-domains/{domain}", "/api/v1/admin/org/allowed-domains", ("{domain}",)),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "reading", "within"), ELSEWHERE)
async def test_items_of_lists_and_parts_of_resources_can_be_written_back(
    furnished: Furnished, method: str, path: str, reading: str, within: tuple[str, ...]
) -> None:
    client = furnished.tenant.admin.client
    resource_body = (await client.get(furnished.path(reading))).json()
    for name in within:
        if name.startswith("{"):
            lists = (
                [resource_body]
                if isinstance(resource_body, list)
                else [value for value in resource_body.values() if isinstance(value, list)]
            )
            items = [item for list_ in lists for item in list_ if isinstance(item, dict)]
            (resource_body,) = [item for item in items if furnished.path(name) in item.values()]
        else:
            resource_body = resource_body[name]
    answer = await client.request(method, furnished.path(path), json=resource_body)
    assert answer.status_code == 200, (resource_body, answer.text)
    answer = await client.request(method, furnished.path(path), json={**resource_body, "nobodys_field": 1})
    assert (answer.status_code in {400, 422}, "nobodys_field" in answer.text) == (True, True)
