"""Sorting, searching and paging of every list of the OpenAPI document, with each documented value."""

from typing import Any, Final

import pytest
from tests.contract.conftest import Furnished
from tests.support.operations import COMMON, DOCUMENT


def _parameters(path: str) -> dict[str, Any]:
    operation = DOCUMENT["paths"][path]["get"]
    return {
        parameter["name"]: parameter["schema"]
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "query"
    }


def _values(schema: dict[str, Any]) -> list[str]:
    """Return the values of a parameter: those of its schema, or of the schemas that it consists of."""
    values = [value for part in schema.get("anyOf", ()) for value in _values(part)]
    return [*schema.get("enum", ()), *values]


LISTS = {path: _parameters(path) for method, path in COMMON if method == "GET"}
ORDERS = [
    (path, value) for path, parameters in LISTS.items() if "sort" in parameters for value in _values(parameters["sort"])
]
#: Lists that are empty in these tests. Tests of their families check the pages.
EMPTY = {"/api/auth/api-keys", "/api/admin/groups/{group_id}/members"}
SEARCHED = [path for path, parameters in LISTS.items() if {"search", "sort"} <= parameters.keys()]


def rows_of(body: Any) -> list[Any]:
    """Return the rows of a list's response, which is an array or an object with one."""
    if isinstance(body, list):
        return body
    (rows,) = (value for value in body.values() if isinstance(value, list))
    return list(rows)


def _ids(body: Any) -> list[Any]:
    """Return the ids of a list's rows, or the rows that have none."""
    return [row.get("id", row) if isinstance(row, dict) else row for row in rows_of(body)]


#: Further parameters of lists that have an order only with them.
REQUIRED_PARAMETERS: Final = {
    ("/api/admin/approvals", "expires_at"): {"status": "pending"},
    ("/api/admin/access-requests", "limit_usd"): {"status": "pending"},
}


@pytest.mark.parametrize(("path", "value"), ORDERS)
async def test_a_list_is_sorted_by_each_field(furnished: Furnished, path: str, value: str) -> None:
    client, url = furnished.tenant.admin.client, furnished.path(path)
    field = value.removeprefix("-")
    more = REQUIRED_PARAMETERS.get((path, field), {})
    answer = await client.get(url, params={"sort": value, **more})
    assert answer.status_code == 200, answer.text
    shown = [row[field] for row in rows_of(answer.json()) if isinstance(row, dict) and row.get(field) is not None]
    if field in {"created_at", "updated_at", "priority"}:
        assert shown == sorted(shown, reverse=value.startswith("-"))
    if not value.startswith("-"):
        descending = await client.get(url, params={"sort": f"-{value}", **more})
        assert _ids(descending.json()) == _ids(answer.json())[::-1]


@pytest.mark.parametrize("path", sorted({path for path, _ in ORDERS}))
async def test_an_unknown_order_is_refused_by_name(furnished: Furnished, path: str) -> None:
    answer = await furnished.tenant.admin.client.get(furnished.path(path), params={"sort": "tenant_id"})
    assert answer.status_code in {400, 422}, answer.text
    assert "sort" in answer.text


@pytest.mark.parametrize("path", [path for path in SEARCHED if path not in EMPTY])
async def test_a_search_leaves_out_other_rows_and_takes_patterns_literally(furnished: Furnished, path: str) -> None:
    client, url = furnished.tenant.admin.client, furnished.path(path)
    for part in ("nobody has this", "%_%", "\\"):
        answer = await client.get(url, params={"search": part})
        assert answer.status_code == 200, answer.text
        assert rows_of(answer.json()) == []


@pytest.mark.parametrize("path", [path for path in SEARCHED if path not in EMPTY])
async def test_a_page_has_at_most_its_number_of_rows(furnished: Furnished, path: str) -> None:
    client, url = furnished.tenant.admin.client, furnished.path(path)
    parameters = LISTS[path]
    size = next(name for name in ("limit", "page_size", "per_page") if name in parameters)
    variant = "b" if size == "page_size" else "a"
    total = len(rows_of((await client.get(url)).json()))
    assert total, f"{path} has no row"
    answer = await client.get(url, params={size: "1"}, headers={"X-API-Variant": variant})
    assert answer.status_code == 200, answer.text
    assert len(rows_of(answer.json())) == 1


#: Lists that return all rows unless `limit` is sent. The number of all rows is in a header or in the body.
COMPLETE = [
    path
    for path, parameters in LISTS.items()
    # The limit of kill switches counts models, and its rows are providers.
    if {"limit", "offset"} <= parameters.keys() and "anyOf" in parameters["limit"] and "kill-switch" not in path
]


@pytest.mark.parametrize("path", COMPLETE)
async def test_a_page_of_a_complete_list_is_a_part_of_it(furnished: Furnished, path: str) -> None:
    client, url = furnished.tenant.admin.client, furnished.path(path)
    complete = await client.get(url)
    assert complete.status_code == 200, complete.text
    if "X-Total-Count" not in complete.headers:
        assert "total" in complete.json()
        return
    total = int(complete.headers["X-Total-Count"])
    for offset in range(min(total, 3)):
        page = await client.get(url, params={"limit": 1, "offset": offset})
        assert page.headers["X-Total-Count"] == str(total)
        assert _window_rows(page.json()) == _window_rows(complete.json())[offset : offset + 1]
    beyond = await client.get(url, params={"limit": 1, "offset": total})
    assert (_window_rows(beyond.json()), beyond.headers["X-Total-Count"]) == ([], str(total))


def _window_rows(body: Any) -> list[Any]:
    """Return the rows of a list that its window selects."""
    return list(body["models"]) if isinstance(body, dict) and "models" in body else rows_of(body)


@pytest.mark.parametrize("path", COMPLETE)
@pytest.mark.parametrize(
    ("name", "value"), [("limit", "0"), ("limit", "501"), ("limit", "x"), ("offset", "-1"), ("offset", "x")]
)
async def test_a_window_out_of_bounds_is_refused_by_name(
    furnished: Furnished, path: str, name: str, value: str
) -> None:
    answer = await furnished.tenant.admin.client.get(furnished.path(path), params={name: value})
    assert answer.status_code in {400, 422}, answer.text
    assert name in answer.text
