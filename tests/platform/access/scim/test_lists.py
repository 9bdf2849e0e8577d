"""Lists: filters, pages, and which attributes are shown (RFC 7644, 3.4.2 and 3.9; reference 2, SCIM)."""

from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from tests.platform.access.scim.conftest import BASE, USER, Directory
from tests.support.platform import RunningPlatform, Tenant


@pytest.fixture
async def people(tenant: Tenant, directory: Directory) -> dict[str, str]:
    """Names by id: three that the directory made, and three that were there before it."""
    fields: dict[str, dict[str, Any]] = {
        "ada": {"externalId": "X-1", "emails": [{"value": "ada@Work.test", "type": "work", "primary": True}]},
        "bob": {"externalId": "x-1", "emails": [{"value": "bob@work.test", "type": "work"},
                                                {"value": "bob@home.test", "type": "home"}]},
        "eve": {"active": False, "emails": []},
    }  # fmt: skip
    made = {(await directory.user(userName=f"{name}.n", **given))["id"]: name for name, given in fields.items()}
    mine = {str(person.id): person.email.split("-")[0] for person in (tenant.admin, tenant.auditor, tenant.user)}
    return {**made, **mine}


MINE = {"admin", "auditor", "user"}


@pytest.mark.parametrize(
    ("filter", "names"),
    [
        ('userName eq "ada.n"', {"ada"}),
        ('USERNAME EQ "ADA.N"', {"ada"}),
        (f'{USER}:userName eq "ada.n"', {"ada"}),
        ('userName ne "ada.n"', {"bob", "eve", *MINE}),
        ('userName sw "a"', {"ada", "admin", "auditor"}),
        ('userName co "DA."', {"ada"}),
        ('userName co "%"', set()),
        ('userName co "_"', set()),
        ('userName ew ".n"', {"ada", "bob", "eve"}),
        ('userName gt "b" and userName lt "c"', {"bob"}),
        ('userName ge "eve.n" and userName le "eve.n"', {"eve"}),
        ("userName pr", {"ada", "bob", "eve", *MINE}),
        ('externalId eq "X-1"', {"ada"}),
        ("externalId pr", {"ada", "bob"}),
        ("externalId eq null", {"eve", *MINE}),
        ("externalId ne null", {"ada", "bob"}),
        ('externalId ne "X-1"', {"bob", "eve", *MINE}),
        ('not (externalId eq "X-1")', {"bob", "eve", *MINE}),
        ('not (externalId eq "X-1" or active eq false)', {"bob", *MINE}),
        ("active eq true", {"ada", "bob", *MINE}),
        ('active eq "False"', {"eve"}),
        ("active ne true", {"eve"}),
        ('emails eq "ADA@work.test"', {"ada"}),
        ('emails.value eq "ada@work.test"', {"ada"}),
        ('emails.value ne "ada@work.test"', {"bob", "eve", *MINE}),
        ('emails[type eq "work"]', {"ada", "bob"}),
        ('emails[type eq "home" and value eq "bob@home.test"]', {"bob"}),
        ('emails[type eq "work" and value eq "bob@home.test"]', set()),
        ('emails[type eq "work"].value eq "bob@work.test"', {"bob"}),
        ("emails[primary eq true]", {"ada", *MINE}),
        ("emails pr", {"ada", "bob", *MINE}),
        ('emails.value ew "@example.test"', MINE),
        ('userName eq "ada.n" or userName eq "bob.n" and active eq false', {"ada"}),
        ('(userName eq "ada.n" or userName eq "eve.n") and active eq false', {"eve"}),
        ('userName eq "\\u0061da.n"', {"ada"}),
        (f'id eq "{uuid4()}"', set()),
        ('id eq "x"', set()),
    ],
)
async def test_a_filter_finds(directory: Directory, people: dict[str, str], filter: str, names: set[str]) -> None:
    assert {people[each] for each in await directory.found("/Users", filter)} == names


@pytest.mark.parametrize(
    "filter",
    [
        "userName", "userName eq", 'userName is "x"', 'userName eq "x', 'userName eq "x" and', '(userName eq "x"',
        'title eq "x"', 'displayName eq "x"', 'userName.first eq "x"', 'groups eq "x"', 'urn:x:y:userName eq "x"',
        "userName eq 5", "userName eq true", 'active eq "perhaps"', "active gt true", "userName gt null",
        'emails[city eq "x"]', 'emails[value eq "x"', 'active[value eq "x"]', 'id co "x"', 'password eq "x"',
        'userName eq "\\u0000"', "(" * 40 + 'userName eq "x"' + ")" * 40 + "x", "a" * 5_000,
    ],
)  # fmt: skip
async def test_a_filter_that_is_not_understood_is_400(directory: Directory, filter: str) -> None:
    error = await directory.call("GET", "/Users", filter=filter, expect=400)
    assert (error["status"], error["scimType"]) == ("400", "invalidFilter")


async def test_a_deep_filter_is_refused_and_not_walked(directory: Directory) -> None:
    deep = "not (" * 400 + "active pr" + ")" * 400
    assert (await directory.call("GET", "/Users", filter=deep, expect=400))["scimType"] == "invalidFilter"


async def test_a_nul_in_a_filter_is_400(directory: Directory) -> None:
    answer = await directory.client.get(f"{BASE}/Users?filter=" + quote('userName eq "\0"'))
    assert answer.status_code == 400


async def test_a_filter_of_groups(directory: Directory) -> None:
    name = uuid4().hex
    made = await directory.group(displayName=name, externalId="G-1")
    for sought in (f'displayName eq "{name.upper()}"', 'externalId eq "G-1"', f'id eq "{made["id"]}"'):
        assert await directory.found("/Groups", sought) == [made["id"]]
    assert await directory.found("/Groups", 'externalId eq "g-1"') == []
    error = await directory.call("GET", "/Groups", filter='members eq "x"', expect=400)
    assert error["scimType"] == "invalidFilter"


async def test_pages_hold_everybody_once_whoever_comes_meanwhile(directory: Directory, people: dict[str, str]) -> None:
    seen: list[str] = []
    for start in (1, 3, 5):
        page = await directory.call("GET", "/Users", startIndex=start, count=2)
        assert (page["startIndex"], page["itemsPerPage"]) == (start, 2)
        seen += [each["id"] for each in page["Resources"]]
        await directory.user()
    assert len(seen) == len(set(seen)) == 6
    assert set(seen) == set(people)


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({}, (1, 3)),
        ({"startIndex": 0}, (1, 3)),
        ({"startIndex": -5}, (1, 3)),
        ({"count": 0}, (1, 0)),
        ({"count": -1}, (1, 0)),
        ({"count": 1}, (1, 1)),
        ({"count": 10**30}, (1, 3)),
        ({"startIndex": 3}, (3, 1)),
        ({"startIndex": 9}, (9, 0)),
    ],
)
async def test_bounds_of_a_page(directory: Directory, query: dict[str, int], shown: tuple[int, int]) -> None:
    page = await directory.call("GET", "/Users", **query)
    assert page["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:ListResponse"]
    assert page["totalResults"] == 3
    assert (page["startIndex"], page["itemsPerPage"]) == shown
    assert len(page["Resources"]) == shown[1]


async def test_a_page_has_a_hundred_by_itself_and_two_hundred_at_most(
    platform: RunningPlatform, tenant: Tenant, directory: Directory
) -> None:
    platform.sql(
        "INSERT INTO users (id, tenant_id, email) SELECT gen_random_uuid(), %s, n || '@example.test'"
        " FROM generate_series(1, 250) n",
        [tenant.id],
    )
    assert (await directory.call("GET", "/Users"))["itemsPerPage"] == 100
    assert (await directory.call("GET", "/Users", count=1_000))["itemsPerPage"] == 200


@pytest.mark.parametrize("name", ["startIndex", "count"])
async def test_a_bound_that_is_no_number_is_400(directory: Directory, name: str) -> None:
    error = await directory.call("GET", "/Users", **{name: "x"}, expect=400)
    assert error["scimType"] == "invalidValue"
    assert name in error["detail"]


ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"attributes": "userName"}, {"userName"}),
        ({"attributes": "USERNAME, title"}, {"userName", "title"}),
        ({"attributes": f"{USER}:userName"}, {"userName"}),
        ({"attributes": "nothing"}, set()),
        ({"attributes": ENTERPRISE}, {ENTERPRISE}),
        ({"attributes": f"{ENTERPRISE}:department"}, {ENTERPRISE}),
        ({"excludedAttributes": "emails,meta,name,title,active,id,schemas"}, {"userName", ENTERPRISE}),
        ({"excludedAttributes": f"emails,meta,name,title,active,{ENTERPRISE}"}, {"userName"}),
    ],
)
async def test_what_is_asked_for_is_shown(directory: Directory, query: dict[str, str], names: set[str]) -> None:
    extension = {"department": "Engines", "division": "North"}
    made = await directory.user(
        title="x", name={"givenName": "A"}, emails=[{"value": "a@example.test"}], **{ENTERPRISE: extension}
    )
    for shown in (
        await directory.call("GET", f"/Users/{made['id']}", **query),
        (await directory.call("GET", "/Users", filter=f'id eq "{made["id"]}"', **query))["Resources"][0],
    ):
        assert set(shown) - {"schemas", "id"} == names
        assert shown["id"] == made["id"]
        if query.get("attributes", "").endswith("department"):
            assert shown[ENTERPRISE] == {"department": "Engines"}


async def test_a_part_of_an_attribute(directory: Directory) -> None:
    ada = await directory.user(name={"givenName": "A", "familyName": "L"})
    shown = await directory.call("GET", f"/Users/{ada['id']}", attributes="name.givenName")
    assert shown["name"] == {"givenName": "A"}
    shown = await directory.call("GET", f"/Users/{ada['id']}", excludedAttributes="name.givenName")
    assert shown["name"] == {"familyName": "L"}
    group = await directory.group(ada)
    shown = await directory.call("GET", f"/Groups/{group['id']}", attributes="members.value")
    assert shown == {"schemas": group["schemas"], "id": group["id"], "members": [{"value": ada["id"]}]}


async def test_changes_too_show_what_is_asked_for(directory: Directory) -> None:
    body = {"userName": f"{uuid4().hex}@example.test"}
    made = await directory.call("POST", "/Users", body, attributes="userName", expect=201)
    assert set(made) == {"schemas", "id", "userName"}


async def test_both_lists_of_attributes_at_once_are_400(directory: Directory) -> None:
    error = await directory.call("GET", "/Users", attributes="id", excludedAttributes="name", expect=400)
    assert error["scimType"] == "invalidValue"


async def test_sorting_is_not_offered_and_changes_nothing(directory: Directory, people: dict[str, str]) -> None:
    plain = await directory.call("GET", "/Users")
    assert await directory.call("GET", "/Users", sortBy="userName", sortOrder="descending") == plain
