"""The pages of models with the rules of groups (docs/model-access.md)."""

from typing import Any
from uuid import uuid4

import pytest
from tests.support.platform import RunningPlatform, Tenant

GROUPS = "/api/admin/groups"
MATRIX = f"{GROUPS}/model-access/models"


@pytest.fixture
async def tenant(platform: RunningPlatform) -> Tenant:
    tenant = await platform.new_tenant()
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo", "plain", "gone", "closed", "vendor/100%_x")
    platform.sql(
        "UPDATE model_configs SET access = 'restricted' WHERE tenant_id = %s AND model_id = 'closed'", [tenant.id]
    )
    return tenant


async def new_group(tenant: Tenant, name: str, **rules: str) -> str:
    """Create a group with a rule for each model of the sandbox, and return its id."""
    group: str = (await tenant.admin.client.post(GROUPS, json={"name": name})).json()["id"]
    for model, access_type in rules.items():
        body = {"model_id": f"sandbox/{model}", "access_type": access_type}
        answer = await tenant.admin.client.post(f"{GROUPS}/{group}/model-access", json=body)
        assert answer.status_code == 201, answer.text
    return group


async def matrix(tenant: Tenant, **parameters: Any) -> tuple[list[dict[str, Any]], int]:
    answer = await tenant.auditor.client.get(MATRIX, params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json(), int(answer.headers["x-total-count"])


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [row["model_id"].removeprefix("sandbox/") for row in rows]


async def test_a_page_contains_the_rules_of_the_requested_groups(tenant: Tenant, other_tenant: Tenant) -> None:
    first = await new_group(tenant, "First", echo="DENY", closed="ALLOW")
    second = await new_group(tenant, "Second", echo="ALLOW")
    foreign = (await other_tenant.admin.client.post(GROUPS, json={"name": "Foreign"})).json()["id"]
    rows, total = await matrix(tenant, group_id=[first, second, foreign])
    assert (names(rows), total) == (["closed", "echo", "gone", "plain", "vendor/100%_x"], 5)
    closed, echo, *others = rows
    assert (closed["access"], echo["access"]) == ("restricted", "open")
    assert {rule["group_id"]: rule["access_type"] for rule in echo["rules"]} == {first: "DENY", second: "ALLOW"}
    assert all(row["rules"] == [] for row in others)
    rows, _ = await matrix(tenant, group_id=second)
    assert [(row["model_id"], row["rules"][0]["group_id"]) for row in rows if row["rules"]] == [
        ("sandbox/echo", second)
    ]
    listed = (await tenant.auditor.client.get(f"{GROUPS}/{second}/model-access")).json()
    assert rows[1]["rules"] == listed
    assert all(row["rules"] == [] for row in (await matrix(tenant))[0])
    assert await matrix(other_tenant, group_id=[first, second]) == ([], 0)


async def test_ruled_models_are_those_that_are_restricted_or_named_by_a_rule(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    assert names((await matrix(tenant, ruled=True))[0]) == ["closed"]
    group = await new_group(tenant, "First", echo="DENY", gone="ALLOW")
    platform.sql("DELETE FROM model_configs WHERE tenant_id = %s AND model_id = 'gone'", [tenant.id])
    rows, total = await matrix(tenant, ruled=True, group_id=group)
    assert (names(rows), total) == (["closed", "echo", "gone"], 3)
    assert [row["access"] for row in rows] == ["restricted", "open", None]
    assert [len(row["rules"]) for row in rows] == [0, 1, 1]
    # A rule counts even if the page does not contain its group.
    assert names((await matrix(tenant, ruled=True))[0]) == ["closed", "echo", "gone"]
    assert names((await matrix(tenant))[0]) == ["closed", "echo", "plain", "vendor/100%_x"]
    assert await matrix(other_tenant, ruled=True) == ([], 0)


@pytest.mark.parametrize(
    ("parameters", "expected", "total"),
    [
        ({"limit": 2}, ["closed", "echo"], 5),
        ({"limit": 2, "offset": 4}, ["vendor/100%_x"], 5),
        ({"offset": 50}, [], 5),
        ({"search": "VENDOR/"}, ["vendor/100%_x"], 1),
        ({"search": "%"}, ["vendor/100%_x"], 1),
        ({"search": "sandbox/e"}, ["echo"], 1),
        ({"search": "shown"}, ["plain"], 1),
        ({"search": "nothing"}, [], 0),
    ],
)
async def test_models_are_paged_and_searched(
    platform: RunningPlatform, tenant: Tenant, parameters: dict[str, Any], expected: list[str], total: int
) -> None:
    platform.sql(
        "UPDATE model_configs SET display_name = 'Shown name' WHERE tenant_id = %s AND model_id = 'plain'", [tenant.id]
    )
    rows, counted = await matrix(tenant, **parameters)
    assert (names(rows), counted) == (expected, total)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("limit", 201),
        ("offset", -1),
        ("search", "x" * 256),
        ("ruled", "perhaps"),
        ("group_id", "payments"),
        ("group_id", [str(uuid4())] * 51),
        ("nobodys_parameter", 1),
    ],
)
async def test_a_bad_parameter_is_named(tenant: Tenant, name: str, value: Any) -> None:
    answer = await tenant.auditor.client.get(MATRIX, params={name: value})
    assert answer.status_code in {400, 422}
    assert name in answer.text


async def test_users_do_not_read_the_rules(tenant: Tenant) -> None:
    assert (await tenant.user.client.get(MATRIX)).status_code == 403
