"""GET /api/admin/usage/spend (docs/records.md)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.support.journal import Journal, outcome
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.ids import new_id
from gatehouse.platform.access.api_keys import table as key_table

SPEND = "/api/admin/usage/spend"
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
MARCH = {"from": "2026-03-01", "to": "2026-03-31"}


async def spend(tenant: Tenant, **params: Any) -> dict[str, Any]:
    answer = await tenant.auditor.client.get(SPEND, params={**MARCH, **params})
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


@pytest.fixture(params=["deltas", "days"])
async def recorded(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, journal: Journal, request: pytest.FixtureRequest
) -> dict[str, Any]:
    """Three requests of the user with a key, one of the administrator, one of a client. The totals are read before and
    after background work has added them up."""
    await platform.new_key(tenant.user)
    (key,) = (await tenant.user.client.get("/api/auth/api-keys")).json()
    group = (await tenant.admin.client.post("/api/admin/groups", json={"name": "Research"})).json()
    own = {"user_id": tenant.user.id, "api_key_id": key["id"], "group_id": group["id"]}
    await journal.append(
        outcome(tenant.id, timestamp=NOON.timestamp(), cost_usd="0.5", **own),
        outcome(tenant.id, timestamp=(NOON + timedelta(days=1)).timestamp(), cost_usd="0.25", **own),
        outcome(tenant.id, timestamp=(NOON + timedelta(days=2)).timestamp(), cost_usd=None, outcome="refused", **own),
        outcome(tenant.id, timestamp=NOON.timestamp(), cost_usd="2", user_id=tenant.admin.id, input_tokens=100),
        outcome(tenant.id, timestamp=NOON.timestamp(), cost_usd="1", client_id=new_id(), cached_tokens=7),
        outcome(other_tenant.id, timestamp=NOON.timestamp(), cost_usd="9"),
    )
    await journal.drain()
    if request.param == "days":
        platform.sql("SELECT gatehouse_fold_spend()")
        assert platform.sql("SELECT count(*) FROM spend_deltas WHERE tenant_id = %s", [tenant.id]) == [(0,)]
    return {"key": key, "group": group}


async def test_the_lists_of_keys_have_the_spend_of_each_key_in_this_month(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, journal: Journal
) -> None:
    for _ in range(2):
        await platform.new_key(tenant.user)
    used, unused = (await tenant.user.client.get("/api/auth/api-keys?sort=created_at")).json()
    assert (used["month_cost_usd"], unused["month_cost_usd"]) == (0, 0)
    month = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    own = {"user_id": tenant.user.id, "api_key_id": used["id"]}
    await journal.append(
        outcome(tenant.id, timestamp=month.timestamp(), cost_usd="0.5", **own),
        outcome(tenant.id, timestamp=datetime.now(UTC).timestamp(), cost_usd=None, outcome="refused", **own),
        outcome(tenant.id, timestamp=(month - timedelta(seconds=1)).timestamp(), cost_usd="4", **own),
        outcome(other_tenant.id, timestamp=month.timestamp(), cost_usd="9", **own),
    )
    await journal.drain()
    platform.sql("SELECT gatehouse_fold_spend()")
    await journal.append(outcome(tenant.id, timestamp=datetime.now(UTC).timestamp(), cost_usd="0.25", **own))
    await journal.drain()
    for person, path in (
        (tenant.user, "/api/auth/api-keys"), (tenant.auditor, "/api/admin/api-keys"),
        (tenant.admin, f"/api/admin/users/{tenant.user.id}/api-keys"),
    ):  # fmt: skip
        costs = {key["id"]: key["month_cost_usd"] for key in (await person.client.get(path)).json()}
        assert costs == {used["id"]: 0.75, unused["id"]: 0}, path
    one = (await tenant.auditor.client.get(f"/api/admin/api-keys/{used['id']}")).json()
    assert one["month_cost_usd"] == 0.75


@pytest.mark.parametrize("is_folded", [True, False])
async def test_keys_are_sorted_by_their_spend_of_this_month(
    platform: RunningPlatform, tenant: Tenant, journal: Journal, *, is_folded: bool
) -> None:
    for person in (tenant.user, tenant.user, tenant.user, tenant.admin):
        await platform.new_key(person)
    first, second, unused = [
        key["id"] for key in (await tenant.user.client.get("/api/auth/api-keys?sort=created_at")).json()
    ]
    (admins,) = [key["id"] for key in (await tenant.admin.client.get("/api/auth/api-keys")).json()]
    now = datetime.now(UTC)
    month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    for key, user, cost, at in (
        (first, tenant.user.id, "0.5", now),
        (first, tenant.user.id, "90", month - timedelta(seconds=1)),
        (second, tenant.user.id, "0.4", month),
        (second, tenant.user.id, "0.3", now),
        (admins, tenant.admin.id, "0.6", now),
        # The cost of a request whose price is unknown is not counted.
        (unused, tenant.user.id, None, now),
    ):
        await journal.append(outcome(tenant.id, timestamp=at.timestamp(), cost_usd=cost, user_id=user, api_key_id=key))
    await journal.drain()
    if is_folded:
        platform.sql("SELECT gatehouse_fold_spend()")

    async def listed(path: str, **query: Any) -> list[str]:
        answer = await tenant.admin.client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return [key["id"] for key in answer.json()]

    everything = [second, admins, first, unused]
    for descending in (True, False):
        sort, ids = ("-month_cost_usd", everything) if descending else ("month_cost_usd", everything[::-1])
        assert await listed("/api/admin/api-keys", sort=sort) == ids
        assert await listed("/api/admin/api-keys", sort=sort, limit=2, offset=1) == ids[1:3]
    of_user = {"user_id": str(tenant.user.id), "sort": "-month_cost_usd"}
    assert await listed("/api/admin/api-keys", **of_user) == [second, first, unused]
    own = (await tenant.user.client.get("/api/auth/api-keys?sort=-month_cost_usd&limit=2")).json()
    assert [key["id"] for key in own] == [second, first]


@pytest.mark.parametrize("is_read_in_order", [False, True])
async def test_pages_of_keys_by_cost_are_parts_of_the_whole_list(
    platform: RunningPlatform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch, is_read_in_order: bool
) -> None:
    if is_read_in_order:
        monkeypatch.setattr(key_table, "_MANY_KEYS", 5)
    for person in (tenant.user, tenant.user, tenant.admin, tenant.user, tenant.admin, tenant.user):
        await platform.new_key(person)
    path = "/api/admin/api-keys"
    first, second, third, *_ = (key["id"] for key in (await tenant.admin.client.get(path)).json())
    columns = "tenant_id, day, api_key_id, requests, input_tokens, output_tokens, cached_tokens, cost_usd, records"
    for is_folded, costs in ((True, {first: 2, second: 1}), (False, {second: 3, third: 1})):
        for key_id, cost in costs.items():
            platform.sql(
                f"INSERT INTO spend_deltas ({columns}) VALUES (%s, (now() AT TIME ZONE 'UTC')::date, %s, 1, 0, 0, 0,"
                " %s, 0)",
                [tenant.id, key_id, cost],
            )
        if is_folded:
            platform.sql("SELECT gatehouse_fold_spend()")
    for sort in ("-month_cost_usd", "month_cost_usd"):
        complete = await tenant.auditor.client.get(path, params={"sort": sort})
        assert complete.headers["X-Total-Count"] == "6"
        costs_in_order = [key["month_cost_usd"] for key in complete.json()]
        assert costs_in_order == sorted([4, 2, 1, 0, 0, 0], reverse=sort.startswith("-"))
        pages = [
            await tenant.auditor.client.get(path, params={"sort": sort, "limit": 2, "offset": offset})
            for offset in (0, 2, 4, 6)
        ]
        assert [key["id"] for page in pages for key in page.json()] == [key["id"] for key in complete.json()]
        assert {page.headers["X-Total-Count"] for page in pages} == {"6"}


async def test_spend_is_summed_up_by_user_group_and_key(tenant: Tenant, recorded: dict[str, Any]) -> None:
    by_user = await spend(tenant, by="user")
    assert {name: by_user[name] for name in ("by", "since", "until", "total", "page", "page_size")} == {
        "by": "user", "since": "2026-03-01", "until": "2026-03-31", "total": 3, "page": 1, "page_size": 50,
    }  # fmt: skip
    assert [(item["id"], item["requests"], item["cost_usd"]) for item in by_user["items"]] == [
        (str(tenant.admin.id), 1, 2.0), (None, 1, 1.0), (str(tenant.user.id), 3, 0.75),
    ]  # fmt: skip
    assert by_user["sum"] == {
        "requests": 5, "input_tokens": 112, "output_tokens": 25, "cached_tokens": 7, "cost_usd": 3.75
    }  # fmt: skip
    user = (await tenant.admin.client.get(f"/api/admin/users/{tenant.user.id}")).json()
    assert by_user["items"][2]["name"] == (user["display_name"] or user["email"])
    (none, of_group) = (await spend(tenant, by="group", sort="cost_usd", page_size=2))["items"][::-1]
    assert (of_group["id"], of_group["name"], of_group["cost_usd"]) == (recorded["group"]["id"], "Research", 0.75)
    assert (none["id"], none["name"], none["cost_usd"]) == (None, None, 3.0)
    of_key = (await spend(tenant, by="api_key", sort="-requests"))["items"][0]
    assert (of_key["id"], of_key["user_id"]) == (recorded["key"]["id"], str(tenant.user.id))
    assert (of_key["name"], of_key["requests"]) == (recorded["key"]["description"], 3)


async def test_spend_is_restricted_to_days_user_and_group(tenant: Tenant, recorded: dict[str, Any]) -> None:
    one_day = {"from": "2026-03-11", "to": "2026-03-11"}
    assert (await spend(tenant, **one_day))["sum"]["cost_usd"] == 0.25
    assert (await spend(tenant, user_id=str(tenant.user.id)))["sum"]["requests"] == 3
    assert (await spend(tenant, group_id=recorded["group"]["id"], by="api_key"))["total"] == 1
    assert (await spend(tenant, group_id=str(new_id())))["items"] == []
    assert (await spend(tenant, **{"from": "2026-03-12", "to": "2026-03-01"}))["total"] == 0


async def test_pages_are_sorted_and_contain_every_item_once(tenant: Tenant, recorded: dict[str, Any]) -> None:
    for sort in ("cost_usd", "requests", "tokens", "name"):
        ascending = [item["id"] for item in (await spend(tenant, sort=sort))["items"]]
        descending = [item["id"] for item in (await spend(tenant, sort=f"-{sort}"))["items"]]
        named = [item for item in ascending if item is not None]
        assert [item for item in descending if item is not None] == named[::-1], sort
        pages = [(await spend(tenant, sort=sort, page=page, page_size=1))["items"][0]["id"] for page in (1, 2, 3)]
        assert pages == ascending
    beyond = await spend(tenant, page=4, page_size=1)
    assert (beyond["items"], beyond["total"], beyond["sum"]["requests"]) == ([], 3, 5)


async def test_the_default_period_is_the_last_thirty_days(tenant: Tenant, journal: Journal) -> None:
    now = datetime.now(UTC)
    for days in (0, 29, 30):
        await journal.append(outcome(tenant.id, timestamp=(now - timedelta(days=days)).timestamp()))
    await journal.drain()
    page = (await tenant.admin.client.get(SPEND)).json()
    assert page["sum"]["requests"] == 2
    assert page["since"] == str((now - timedelta(days=29)).date())


async def test_archived_records_remain_in_the_totals(
    platform: RunningPlatform, tenant: Tenant, recorded: dict[str, Any]
) -> None:
    platform.sql("DELETE FROM usage_records WHERE tenant_id = %s AND api_key_id IS NOT NULL", [tenant.id])
    for _ in range(2):
        of_key = (await spend(tenant, by="api_key", sort="-requests"))["items"][0]
        assert (of_key["id"], of_key["requests"], of_key["cost_usd"]) == (recorded["key"]["id"], 3, 0.75)
        # The list of records has the records that are left.
        listed = await tenant.admin.client.get("/api/v1/usage/records", params={"api_key_id": recorded["key"]["id"]})
        assert (listed.json()["total"], listed.json()["records"]) == (0, [])
        platform.sql("SELECT gatehouse_fold_spend()")
    stored = "SELECT sum(records), sum(requests) FROM spend_days WHERE tenant_id = %s AND api_key_id IS NOT NULL"
    assert platform.sql(stored, [tenant.id]) == [(0, 3)]


async def test_a_deleted_key_keeps_its_spend(tenant: Tenant, recorded: dict[str, Any]) -> None:
    key_id = recorded["key"]["id"]
    assert (await tenant.user.client.delete(f"/api/auth/api-keys/{key_id}")).status_code == 204
    item = (await spend(tenant, by="api_key", sort="-requests"))["items"][0]
    assert (item["id"], item["name"], item["user_id"]) == (key_id, None, None)


async def test_only_those_who_see_the_organization_read_its_spend(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, recorded: dict[str, Any]
) -> None:
    reader = await platform.new_m2m(tenant.id, "admin:read")
    other = await platform.new_m2m(tenant.id, "api:read", "audit:read")
    for client, status in [(platform.anonymous, 401), (tenant.user.client, 403), (other, 403), (reader, 200)]:
        assert (await client.get(SPEND)).status_code == status
    foreign = await other_tenant.admin.client.get(SPEND, params={**MARCH, "user_id": str(tenant.user.id)})
    assert foreign.json()["items"] == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("by", "model"), ("sort", "-price"), ("from", "yesterday"), ("to", "2026-02-30"), ("user_id", "x"),
        ("group_id", "x"), ("page", "0"), ("page_size", "201"),
    ],
)  # fmt: skip
async def test_a_bad_parameter_is_named(tenant: Tenant, name: str, value: str) -> None:
    answer = await tenant.admin.client.get(SPEND, params={name: value})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["query", name]
