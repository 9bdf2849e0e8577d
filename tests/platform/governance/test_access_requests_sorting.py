"""The order of access requests (docs/access-requests.md)."""

from typing import Any

from tests.support.platform import Person, Tenant

OWN = "/api/access-requests"
ALL = "/api/admin/access-requests"


async def ask(person: Person, **limits: Any) -> str:
    body = {"kind": "limit", "reason": "A large translation.", **limits}
    answer = await person.client.post(OWN, json=body)
    assert answer.status_code == 201, answer.text
    request_id: str = answer.json()["id"]
    return request_id


async def listed(person: Person, path: str, **query: Any) -> list[str]:
    answer = await person.client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


async def test_lists_are_sorted_by_time_and_pending_requests_by_the_limit(tenant: Tenant, other_tenant: Tenant) -> None:
    calls = await ask(tenant.user, period="minute", limit_requests=5)
    large = await ask(tenant.user, period="month", limit_usd=200)
    small = await ask(tenant.admin, period="month", limit_usd=9.5)
    tokens = await ask(tenant.user, period="day", limit_tokens=5)
    await ask(other_tenant.user, period="month", limit_usd=50)

    by_time = [calls, large, small, tokens]
    assert await listed(tenant.admin, ALL, sort="created_at") == by_time
    assert await listed(tenant.admin, ALL) == by_time[::-1]
    assert await listed(tenant.admin, ALL, sort="-created_at", status="pending") == by_time[::-1]
    assert await listed(tenant.admin, ALL, sort="created_at", page=2, page_size=3) == by_time[3:]
    # Requests without an amount come last.
    by_limit = {"sort": "limit_usd", "status": "pending"}
    assert await listed(tenant.auditor, ALL, **by_limit) == [small, large, calls, tokens]
    by_limit["sort"] = "-limit_usd"
    assert await listed(tenant.auditor, ALL, **by_limit) == [large, small, tokens, calls]
    assert await listed(tenant.auditor, ALL, **by_limit, page=2, page_size=1) == [small]
    assert await listed(tenant.user, OWN, sort="limit_usd") == [large, calls, tokens]
    assert await listed(tenant.user, OWN, sort="created_at") == [calls, large, tokens]


async def test_only_pending_requests_of_all_users_are_sorted_by_the_limit(tenant: Tenant) -> None:
    for query in ({}, {"status": "approved"}):
        for sort in ("limit_usd", "-limit_usd"):
            answer = await tenant.auditor.client.get(ALL, params={"sort": sort, **query})
            assert (answer.status_code, "status=pending" in answer.text) == (400, True)
    for path in (OWN, ALL):
        answer = await tenant.admin.client.get(path, params={"sort": "reason"})
        assert (answer.status_code, "sort" in answer.text) == (422, True)
