"""The discovery endpoints (RFC 7644, 4)."""

import pytest
from tests.platform.access.scim.conftest import BASE, GROUP, USER, Directory

ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"


async def test_the_capabilities_are_those_of_the_contract(directory: Directory) -> None:
    result = await directory.call("GET", "/ServiceProviderConfig")
    offered = {
        name: result[name]["supported"] for name in ("patch", "filter", "bulk", "sort", "etag", "changePassword")
    }
    assert offered == {
        "patch": True, "filter": True, "bulk": False, "sort": False, "etag": False, "changePassword": False,
    }  # fmt: skip
    assert result["filter"]["maxResults"] == 200
    assert result["authenticationSchemes"][0]["type"] == "oauthbearertoken"


async def test_the_resource_types_are_users_and_groups(directory: Directory) -> None:
    listed = await directory.call("GET", "/ResourceTypes")
    assert listed["totalResults"] == 2
    user, group = listed["Resources"]
    assert (user["endpoint"], user["schema"], user["schemaExtensions"][0]["schema"]) == ("/Users", USER, ENTERPRISE)
    assert (group["endpoint"], group["schema"]) == ("/Groups", GROUP)
    assert await directory.call("GET", "/ResourceTypes/User") == user
    assert user["meta"]["location"].endswith(f"{BASE}/ResourceTypes/User")


async def test_the_schemas_contain_only_stored_attributes(directory: Directory) -> None:
    listed = await directory.call("GET", "/Schemas")
    assert [resource["id"] for resource in listed["Resources"]] == [USER, ENTERPRISE, GROUP]
    user = await directory.call("GET", f"/Schemas/{USER}")
    assert user == listed["Resources"][0]
    names = {attribute["name"] for attribute in user["attributes"]}
    assert {"userName", "emails", "active", "name"} <= names
    assert names.isdisjoint({"password", "roles", "entitlements"})


@pytest.mark.parametrize("path", ["/Schemas/urn:x", "/ResourceTypes/Pet", "/nothing"])
async def test_an_unknown_document_is_404(directory: Directory, path: str) -> None:
    assert (await directory.call("GET", path, expect=404))["status"] == "404"


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/.search"), ("POST", "/Users/.search"), ("POST", "/Bulk"), ("GET", "/Me")]
)
async def test_an_unsupported_operation_is_501(directory: Directory, method: str, path: str) -> None:
    error = await directory.call(method, path, expect=501)
    assert (error["schemas"], error["status"]) == (["urn:ietf:params:scim:api:messages:2.0:Error"], "501")


async def test_an_unsupported_method_is_405(directory: Directory) -> None:
    for path in ("/ServiceProviderConfig", "/Schemas", "/ResourceTypes", "/Users"):
        await directory.call("DELETE", path, expect=405)
