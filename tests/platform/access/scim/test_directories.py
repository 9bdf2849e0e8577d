"""Requests of Entra ID and Okta, in the order and spelling of their manuals.

Entra ID: "Develop and plan provisioning for a SCIM endpoint" and "Known issues and resolutions with SCIM 2.0 protocol
compliance" (its flag `aadOptscim062020`). Okta: "Okta and SCIM Version 2.0" and its "SCIM 2.0 SPEC Test".
"""

from typing import Any
from uuid import uuid4

import pytest
from tests.platform.access.scim.conftest import BASE, GROUP, PATCH, USER, Directory
from tests.support.platform import RunningPlatform

ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
CUSTOM = "urn:ietf:params:scim:schemas:extension:CustomExtensionName:2.0:User"


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"schemas": [PATCH], "Operations": list(operations)}


async def entra_user(directory: Directory, **fields: Any) -> dict[str, Any]:
    body = {
        "schemas": [USER, ENTERPRISE],
        "externalId": str(uuid4()),
        "userName": f"Test_User_{uuid4()}",
        "active": True,
        "emails": [{"primary": True, "type": "work", "value": f"Test_User_{uuid4()}@testuser.test"}],
        "meta": {"resourceType": "User"},
        "name": {"formatted": "givenName familyName", "familyName": "familyName", "givenName": "givenName"},
        "roles": [],
        **fields,
    }
    created: dict[str, Any] = await directory.call("POST", "/Users", body, expect=201)
    kept = {name: value for name, value in body.items() if name not in {"schemas", "meta", "roles"}}
    assert {name: created[name] for name in kept} == kept
    return created


async def test_entra_tests_the_connection(directory: Directory) -> None:
    probe = await directory.call("GET", "/Users", filter=f'userName eq "{uuid4()}"')
    assert (probe["schemas"], probe["totalResults"], probe["Resources"]) == (
        ["urn:ietf:params:scim:api:messages:2.0:ListResponse"], 0, [],
    )  # fmt: skip


async def test_entra_provisions_a_user(directory: Directory) -> None:
    created = await entra_user(directory)
    path, address = f"/Users/{created['id']}", f"{uuid4().hex}@testuser.test"
    for filter_text in (
        f'userName eq "{created["userName"]}"',
        f'externalId eq "{created["externalId"]}"',
        f'emails[type eq "work"].value eq "{created["emails"][0]["value"]}"',
    ):
        assert (await directory.call("GET", "/Users", filter=filter_text))["Resources"] == [created]
    assert await directory.call("GET", path) == created
    updated = await directory.call(
        "PATCH",
        path,
        patch(
            {"op": "Replace", "path": 'emails[type eq "work"].value', "value": address},
            {"op": "Replace", "path": "name.familyName", "value": "updatedFamilyName"},
        ),
    )
    assert updated["emails"] == [{"value": address, "type": "work", "primary": True}]
    assert updated["name"]["familyName"] == "updatedFamilyName"
    name = f"{uuid4()}@testuser.test"
    renamed = await directory.call("PATCH", path, patch({"op": "Replace", "path": "userName", "value": name}))
    assert (renamed["userName"], renamed["emails"]) == (name, updated["emails"])
    await directory.call("DELETE", path, expect=204)
    assert (await directory.call("GET", path, expect=404))["status"] == "404"
    assert await directory.matching_ids("/Users", f'userName eq "{name}"') == []


async def test_entra_sets_the_attributes_of_its_default_mapping(directory: Directory) -> None:
    created = await entra_user(directory, emails=[{"type": "work", "value": f"{uuid4().hex}@testuser.test"}])
    operations = {
        "title": "Engineer",
        "nickName": "Babs",
        'phoneNumbers[type eq "mobile"].value': "55555555555",
        'emails[type eq "other"].Value': f"{uuid4().hex}@testuser.test",
        'addresses[type eq "other"].Formatted': "Room 1",
        'addresses[type eq "work"].streetAddress': "1 Road",
        'addresses[type eq "work"].postalCode': "98052",
        f"{ENTERPRISE}:department": "Engines",
        f"{ENTERPRISE}:employeeNumber": "701984",
        # Attributes that are not stored cause no error.
        f"{CUSTOM}:tag": "701984",
        'roles[primary eq "True"].value': "x",
    }
    sent = [{"op": "Add", "path": path, "value": value} for path, value in operations.items()]
    shown = await directory.call("PATCH", f"/Users/{created['id']}", patch(*sent))
    assert shown["phoneNumbers"] == [{"value": "55555555555", "type": "mobile"}]
    assert shown["emails"][1] == {"value": sent[3]["value"], "type": "other"}
    assert shown["addresses"] == [
        {"type": "other", "formatted": "Room 1"},
        {"type": "work", "streetAddress": "1 Road", "postalCode": "98052"},
    ]
    assert shown[ENTERPRISE] == {"department": "Engines", "employeeNumber": "701984"}
    assert (shown["title"], shown["nickName"]) == ("Engineer", "Babs")


async def test_entra_creates_a_user_with_nulls_and_attributes_that_are_not_stored(directory: Directory) -> None:
    name = f"{uuid4().hex}@testuser.test"
    body = {
        "schemas": [USER, "urn:ietf:params:scim:schemas:extension:enterprise:2.0User", CUSTOM],
        "id": "48af03ac28ad4fb88478",
        "externalId": "jyoung",
        "userName": name,
        "active": True,
        "addresses": None,
        "displayName": "Joy Young",
        "emails": [{"type": "work", "value": name, "primary": True}],
        "meta": {"resourceType": "User", "version": 'W/"3694e05e9dff591"'},
        "name": {"familyName": "Young", "givenName": "Joy"},
        "phoneNumbers": None,
        "preferredLanguage": None,
        "title": None,
        "department": None,
        "manager": None,
        ENTERPRISE: {"manager": "123456"},
        CUSTOM: {"tag": "701984"},
    }
    created = await directory.call("POST", "/Users", body, expect=201)
    assert created["id"] != body["id"]
    assert set(created) == {
        "schemas", "id", "externalId", "userName", "displayName", "name", "emails", "active", "groups", "meta",
        ENTERPRISE,
    }  # fmt: skip
    assert created[ENTERPRISE] == {"manager": {"value": "123456"}}


@pytest.mark.parametrize("disabled", [("Replace", "False"), ("replace", False)], ids=["default form", "with the flag"])
async def test_entra_disables_and_restores_a_user(
    platform: RunningPlatform, directory: Directory, disabled: tuple[str, Any]
) -> None:
    (op, value), created = disabled, await entra_user(directory)
    path, query = f"/Users/{created['id']}", "SELECT is_active FROM users WHERE id = %s"
    gone = await directory.call("PATCH", path, patch({"op": op, "path": "active", "value": value}))
    assert (gone["active"], platform.sql(query, [created["id"]])) == (False, [(False,)])
    # Inactive users are listed and found too.
    assert (await directory.call("GET", path))["active"] is False
    assert await directory.matching_ids("/Users", f'userName eq "{created["userName"]}"') == [created["id"]]
    restored = "True" if isinstance(value, str) else True
    back = await directory.call("PATCH", path, patch({"op": op, "path": "active", "value": restored}))
    assert (back["active"], platform.sql(query, [created["id"]])) == (True, [(True,)])


@pytest.mark.parametrize("flag", [False, True], ids=["default form", "with the flag"])
async def test_entra_replaces_many_attributes(directory: Directory, flag: bool) -> None:
    created, address, name = await entra_user(directory), f"{uuid4().hex}@testuser.test", str(uuid4())
    others = {
        "displayName": "Pvlo",
        "name.givenName": "Gtfd",
        "name.familyName": "Pkqf",
        "externalId": name,
        f"{ENTERPRISE}:employeeNumber": "Eqpj",
    }
    mail = {"op": "replace" if flag else "Replace", "path": 'emails[type eq "work"].value', "value": address}
    other_operations = [{"op": "Replace", "path": path, "value": value} for path, value in others.items()]
    sent = [mail, {"op": "replace", "value": others}] if flag else [other_operations[0], mail, *other_operations[1:]]
    shown = await directory.call("PATCH", f"/Users/{created['id']}", patch(*sent))
    assert shown["emails"] == [{"value": address, "type": "work", "primary": True}]
    assert shown["name"] == {"formatted": "givenName familyName", "familyName": "Pkqf", "givenName": "Gtfd"}
    assert (shown["displayName"], shown["externalId"]) == ("Pvlo", name)
    assert shown[ENTERPRISE] == {"employeeNumber": "Eqpj"}


async def test_entra_sets_a_manager(directory: Directory) -> None:
    created, boss = await entra_user(directory), await entra_user(directory)
    request = {"filter": f'id eq "{created["id"]}" and manager eq "{boss["id"]}"', "attributes": "id"}
    assert (await directory.call("GET", "/Users", **request))["totalResults"] == 0
    reference = [{"$ref": boss["meta"]["location"], "value": boss["id"]}]
    add = patch({"op": "Add", "path": "manager", "value": reference})
    shown = await directory.call("PATCH", f"/Users/{created['id']}", add)
    assert shown[ENTERPRISE] == {"manager": {"value": boss["id"]}}
    assert [resource["id"] for resource in (await directory.call("GET", "/Users", **request))["Resources"]] == [
        created["id"]
    ]
    remove = patch({"op": "Remove", "path": f"{ENTERPRISE}:manager"})
    assert ENTERPRISE not in await directory.call("PATCH", f"/Users/{created['id']}", remove)


async def test_entra_provisions_a_group(directory: Directory) -> None:
    ada, bob, name = await entra_user(directory), await entra_user(directory), uuid4().hex
    created = await directory.call(
        "POST",
        "/Groups",
        {
            "schemas": [GROUP, "http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group"],
            "externalId": "8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159",
            "displayName": name,
            "meta": {"resourceType": "Group"},
        },
        expect=201,
    )
    assert (created["schemas"], created["members"]) == ([GROUP], [])
    path = f"/Groups/{created['id']}"
    without = {key: value for key, value in created.items() if key != "members"}
    assert await directory.call("GET", path, excludedAttributes="members") == without
    result = await directory.call("GET", "/Groups", excludedAttributes="members", filter=f'displayName eq "{name}"')
    assert result["Resources"] == [without]
    await directory.call("PATCH", path, patch({"op": "Replace", "path": "displayName", "value": f"1879{name}"}))
    named = [{"$ref": None, "value": item["id"]} for item in (ada, bob)]
    await directory.call("PATCH", path, patch({"op": "Add", "path": "members", "value": named}))
    request = {"filter": f'id eq "{created["id"]}" and members eq "{ada["id"]}"', "excludedAttributes": "members"}
    assert (await directory.call("GET", "/Groups", **request))["totalResults"] == 1
    left = await directory.call("PATCH", path, patch({"op": "Remove", "path": "members", "value": named[:1]}))
    assert [member["value"] for member in left["members"]] == [bob["id"]]
    flagged = patch({"op": "remove", "path": f'members[value eq "{bob["id"]}"]'})
    assert (await directory.call("PATCH", path, flagged))["members"] == []
    await directory.call("DELETE", path, expect=204)


async def okta_user(directory: Directory, name: str) -> dict[str, Any]:
    query = {"filter": f'userName eq "{name}"', "startIndex": 1, "count": 100}
    assert await directory.call("GET", "/Users", **query) == {
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:ListResponse"],
        "totalResults": 0, "startIndex": 1, "itemsPerPage": 0, "Resources": [],
    }  # fmt: skip
    body = {
        "schemas": [USER],
        "userName": name,
        "name": {"givenName": "Test", "familyName": "User"},
        "emails": [{"primary": True, "value": name, "type": "work"}],
        "displayName": "Test User",
        "locale": "en-US",
        "externalId": "00ujl29u0le5T6Aj10h7",
        "groups": [],
        "password": "1mz050nq",
        "active": True,
    }
    created: dict[str, Any] = await directory.call("POST", "/Users", body, expect=201)
    assert {name: value for name, value in created.items() if name not in {"id", "meta"}} == {
        name: value for name, value in body.items() if name != "password"
    }
    repeated = await directory.call("POST", "/Users", body, expect=409)
    assert (repeated["status"], repeated["scimType"]) == ("409", "uniqueness")
    return created


async def test_okta_provisions_a_user(directory: Directory) -> None:
    name = f"{uuid4().hex}@okta.test"
    created = await okta_user(directory, name)
    path = f"/Users/{created['id']}"
    body = {
        "schemas": [USER],
        "id": created["id"],
        "userName": name,
        "name": {"givenName": "Another", "middleName": "Excited", "familyName": "User"},
        "emails": [{"primary": True, "value": name, "type": "work", "display": name}],
        "active": True,
        "groups": [],
        "meta": {"resourceType": "User"},
    }
    replaced = await directory.call("PUT", path, body)
    assert {key: value for key, value in replaced.items() if key != "meta"} == {
        key: value for key, value in body.items() if key != "meta"
    }
    gone = await directory.call("PATCH", path, patch({"op": "replace", "value": {"active": False}}))
    assert (gone["active"], gone["name"], gone["emails"]) == (False, body["name"], body["emails"])
    # For an application of the organization itself, Okta sends changes by PUT.
    assert (await directory.call("PUT", path, body))["active"] is True
    assert (await directory.call("PUT", path, {**body, "active": False}))["active"] is False


async def test_okta_imports_page_by_page(directory: Directory) -> None:
    created = [(await okta_user(directory, f"{uuid4().hex}@okta.test"))["id"] for _ in range(3)]
    seen, start = [], 1
    while True:
        page = await directory.call("GET", "/Users", startIndex=start, count=2)
        seen += [resource["id"] for resource in page["Resources"]]
        start += 2
        if start > page["totalResults"]:
            break
    assert seen[-3:] == created
    assert len(seen) == len(set(seen)) == page["totalResults"]


async def test_okta_checks_the_service(platform: RunningPlatform, directory: Directory) -> None:
    name = f"{uuid4().hex}@okta.test"
    await okta_user(directory, name)
    assert len(await directory.matching_ids("/Users", f'userName eq "{name.upper()}"')) == 1
    missing = await directory.call("GET", "/Users/00919288221112222", expect=404)
    assert (missing["status"], bool(missing["detail"])) == ("404", True)
    for headers in ({"Authorization": "non-token"}, {}):
        refused = await platform.anonymous.get(f"{BASE}/Users", headers=headers)
        assert refused.status_code == 401
        assert refused.json()["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
        assert (refused.json()["status"], bool(refused.json()["detail"])) == ("401", True)


async def test_okta_pushes_a_group(directory: Directory) -> None:
    ada, bob, name = await directory.user(), await directory.user(), uuid4().hex
    listed = await directory.call("GET", "/Groups", startIndex=1, count=100)
    assert listed["totalResults"] == 0
    created = await directory.call(
        "POST", "/Groups", {"schemas": [GROUP], "displayName": name, "members": []}, expect=201
    )
    assert created["members"] == []
    path = f"/Groups/{created['id']}"
    rename = {"op": "replace", "value": {"id": created["id"], "displayName": f"{name}2"}}
    assert (await directory.call("PATCH", path, patch(rename)))["displayName"] == f"{name}2"
    entry = {"value": ada["id"], "display": ada["userName"]}
    swapped = await directory.call(
        "PATCH",
        path,
        patch(
            {"op": "remove", "path": f'members[value eq "{bob["id"]}"]'},
            {"op": "add", "path": "members", "value": [entry]},
        ),
    )
    assert [(member["value"], member["display"]) for member in swapped["members"]] == [(ada["id"], ada["userName"])]
    both = [entry, {"value": bob["id"], "display": "Bob"}]
    replaced = await directory.call("PATCH", path, patch({"op": "replace", "path": "members", "value": both}))
    assert {member["value"] for member in replaced["members"]} == {ada["id"], bob["id"]}
    put = {"schemas": [GROUP], "id": created["id"], "displayName": name, "members": [entry]}
    assert [member["value"] for member in (await directory.call("PUT", path, put))["members"]] == [ada["id"]]
    await directory.call("DELETE", path, expect=204)


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ({"op": "move", "path": "title", "value": "x"}, "invalidValue"),
        ({"op": "remove"}, "noTarget"),
        ({"op": "add", "path": "title"}, "invalidValue"),
        ({"op": "replace", "path": "emails[", "value": "x"}, "invalidPath"),
        ({"op": "replace", "path": "active", "value": "perhaps"}, "invalidValue"),
        ({"op": "replace", "path": "emails", "value": "x"}, "invalidValue"),
        ({"op": "replace", "path": 'emails[type ne "x"].value', "value": "x"}, "noTarget"),
        ({"op": "remove", "path": "userName"}, "mutability"),
        ({"op": "remove", "path": "active"}, "mutability"),
        ({"op": "replace", "path": "id", "value": "x"}, "mutability"),
        ({"op": "replace", "path": "groups", "value": [{"value": "x"}]}, "mutability"),
        ({"op": "replace", "path": 5, "value": "x"}, "invalidValue"),
        ({"op": "replace", "value": "x"}, "invalidValue"),
        ({"op": "add", "path": "emails", "value": [{"value": str(n)} for n in range(21)]}, "invalidValue"),
    ],
)
async def test_a_bad_operation_changes_nothing_and_names_its_scim_type(
    directory: Directory, operation: dict[str, Any], kind: str
) -> None:
    created = await directory.user(title="before", emails=[])
    first = {"op": "replace", "path": "title", "value": "after"}
    error = await directory.patch(f"/Users/{created['id']}", first, operation, expect=400)
    assert error["scimType"] == kind
    assert "pydantic" not in error["detail"]
    assert (await directory.call("GET", f"/Users/{created['id']}"))["title"] == "before"


async def test_many_operations_are_refused(directory: Directory) -> None:
    created = await directory.user()
    operations = [{"op": "replace", "path": "title", "value": "x"}] * 51
    assert (await directory.patch(f"/Users/{created['id']}", *operations, expect=400))["scimType"] == "invalidValue"
