"""What Entra ID and Okta send, as their manuals show it, in their order and spelling."""

from typing import Any
from uuid import uuid4

import pytest
from tests.platform.access.scim.conftest import GROUP, PATCH, USER, Directory

ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"schemas": [PATCH], "Operations": list(operations)}


async def test_entra_provisions_a_user(directory: Directory) -> None:
    name = f"{uuid4().hex}@example.test"
    # "Test connection" looks for a user that there is not.
    probe = await directory.call("GET", "/Users", filter=f'userName eq "{uuid4()}"')
    assert (probe["totalResults"], probe["Resources"]) == (0, [])
    made = await directory.call(
        "POST",
        "/Users",
        {
            "schemas": [USER, ENTERPRISE],
            "externalId": "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
            "userName": name,
            "active": True,
            "emails": [{"primary": True, "type": "work", "value": name}],
            "meta": {"resourceType": "User"},
            "name": {"formatted": "givenName familyName", "familyName": "familyName", "givenName": "givenName"},
            "roles": [],
        },
        expect=201,
    )
    path = f"/Users/{made['id']}"
    assert await directory.found("/Users", f'userName eq "{name}"') == [made["id"]]
    assert await directory.found("/Users", f'externalId eq "{made["externalId"]}"') == [made["id"]]
    updated = await directory.call(
        "PATCH",
        path,
        patch(
            {"op": "Replace", "path": 'emails[type eq "work"].value', "value": f"updated-{name}"},
            {"op": "Replace", "path": "name.familyName", "value": "updatedFamilyName"},
            {"op": "Add", "path": 'phoneNumbers[type eq "mobile"].value', "value": "+1 555 0100"},
            {"op": "Add", "path": f"{ENTERPRISE}:department", "value": "Engines"},
            {"op": "Add", "path": f"{ENTERPRISE}:manager", "value": str(uuid4())},
            {"op": "Replace", "path": 'addresses[type eq "work"].country', "value": "UK"},
        ),
    )
    assert updated["emails"] == [{"value": f"updated-{name}", "type": "work", "primary": True}]
    assert updated["name"]["familyName"] == "updatedFamilyName"
    assert updated["phoneNumbers"] == [{"value": "+1 555 0100", "type": "mobile"}]
    assert updated["addresses"] == [{"country": "UK", "type": "work"}]
    assert updated[ENTERPRISE]["department"] == "Engines"
    assert set(updated[ENTERPRISE]["manager"]) == {"value"}
    renamed = await directory.call("PATCH", path, patch({"op": "Replace", "path": "userName", "value": f"5b50{name}"}))
    assert renamed["userName"] == f"5b50{name}"
    disabled = await directory.call("PATCH", path, patch({"op": "Replace", "path": "active", "value": "False"}))
    assert disabled["active"] is False
    pathless = patch({"op": "Add", "value": {"active": "True", "displayName": "D", "name.givenName": "G",
                                             f"{ENTERPRISE}:department": "Other", "unknown": 1}})  # fmt: skip
    again = await directory.call("PATCH", path, pathless)
    assert (again["active"], again["displayName"], again["name"]["givenName"]) == (True, "D", "G")
    assert again[ENTERPRISE]["department"] == "Other"
    gone = await directory.call("PATCH", path, patch({"op": "Remove", "path": f"{ENTERPRISE}:manager"}))
    assert "manager" not in gone[ENTERPRISE]
    await directory.call("DELETE", path, expect=204)
    await directory.call("GET", path, expect=404)
    assert await directory.found("/Users", f'userName eq "5b50{name}"') == []


async def test_entra_provisions_a_group(directory: Directory) -> None:
    ada, name = await directory.user(), uuid4().hex
    made = await directory.call(
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
    path = f"/Groups/{made['id']}"
    found = await directory.call("GET", "/Groups", excludedAttributes="members", filter=f'displayName eq "{name}"')
    assert [each["id"] for each in found["Resources"]] == [made["id"]]
    assert (await directory.call("GET", path, excludedAttributes="members"))["displayName"] == name
    await directory.call("PATCH", path, patch({"op": "Replace", "path": "displayName", "value": f"1879{name}"}))
    joined = await directory.call(
        "PATCH", path, patch({"op": "Add", "path": "members", "value": [{"$ref": None, "value": ada["id"]}]})
    )
    assert [member["value"] for member in joined["members"]] == [ada["id"]]
    left = await directory.call(
        "PATCH", path, patch({"op": "Remove", "path": "members", "value": [{"$ref": None, "value": ada["id"]}]})
    )
    assert "members" not in left
    await directory.call("DELETE", path, expect=204)


async def test_okta_provisions_a_user(directory: Directory) -> None:
    name = f"{uuid4().hex}@example.test"
    listed = await directory.call("GET", "/Users", startIndex=1, count=2)
    assert listed["itemsPerPage"] == 2
    query = {"filter": f'userName eq "{name}"', "startIndex": 1, "count": 100}
    assert (await directory.call("GET", "/Users", **query))["Resources"] == []
    made = await directory.call(
        "POST",
        "/Users",
        {
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
        },
        expect=201,
    )
    path = f"/Users/{made['id']}"
    assert made["locale"] == "en-US"
    assert (await directory.call("POST", "/Users", {"userName": name}, expect=409))["scimType"] == "uniqueness"
    shown = await directory.call("GET", path)
    replaced = await directory.call(
        "PUT", path, {**shown, "name": {"givenName": "Another", "familyName": "User"}, "middleName": "Excited"}
    )
    assert replaced["name"]["givenName"] == "Another"
    deactivated = await directory.call("PATCH", path, patch({"op": "replace", "value": {"active": False}}))
    assert deactivated["active"] is False
    assert (await directory.call("PUT", path, {**replaced, "active": True}))["active"] is True


async def test_okta_pushes_a_group(directory: Directory) -> None:
    ada, bob, name = await directory.user(), await directory.user(), uuid4().hex
    listed = await directory.call("GET", "/Groups", startIndex=1, count=100)
    assert listed["totalResults"] == 0
    made = await directory.call("POST", "/Groups", {"schemas": [GROUP], "displayName": name, "members": []}, expect=201)
    path = f"/Groups/{made['id']}"
    rename = {"op": "replace", "value": {"id": made["id"], "displayName": f"{name}2"}}
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
    assert [(each["value"], each["display"]) for each in swapped["members"]] == [(ada["id"], ada["userName"])]
    replaced = await directory.call(
        "PATCH", path, patch({"op": "replace", "path": "members", "value": [{"value": bob["id"], "display": "Bob"}]})
    )
    assert [each["value"] for each in replaced["members"]] == [bob["id"]]
    put = {"schemas": [GROUP], "id": made["id"], "displayName": name, "members": [entry]}
    assert (await directory.call("PUT", path, put))["members"][0]["value"] == ada["id"]
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
async def test_a_bad_operation_changes_nothing_and_says_of_what_kind_it_is(
    directory: Directory, operation: dict[str, Any], kind: str
) -> None:
    made = await directory.user(title="before", emails=[])
    first = {"op": "replace", "path": "title", "value": "after"}
    error = await directory.patch(f"/Users/{made['id']}", first, operation, expect=400)
    assert error["scimType"] == kind
    assert "pydantic" not in error["detail"]
    assert (await directory.call("GET", f"/Users/{made['id']}"))["title"] == "before"


async def test_many_operations_are_refused(directory: Directory) -> None:
    made = await directory.user()
    operations = [{"op": "replace", "path": "title", "value": "x"}] * 51
    assert (await directory.patch(f"/Users/{made['id']}", *operations, expect=400))["scimType"] == "invalidValue"
