"""Two operators' concurrent changes of a setting do not overwrite each other unnoticed (`ETag`, `If-Match`)."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from tests.support.outpost_server import OutpostServer

from gatehouse.outpost.admin.app import document

PROVIDERS, ROUTING, BUDGET = (
    "/admin/api/override/providers", "/admin/api/override/routing", "/admin/api/budget",
)  # fmt: skip
#: A setting, three values of it, and the value that the fixture sets.
SETTINGS: list[tuple[str, list[dict[str, Any]]]] = [
    (PROVIDERS, [{"disabled": {"m": [name]}} for name in ("a", "b", "c")] + [{"disabled": {}}]),
    (ROUTING, [{"routes": {"m": f"{name}/m"}} for name in ("a", "b", "c")] + [{"routes": {}}]),
    (BUDGET, [{"monthly_requests": number} for number in (1001, 1002, 1003)] + [{"monthly_requests": None}]),
]


@pytest.fixture
def restored(operator: httpx2.Client) -> Any:
    yield
    for path, values in SETTINGS:
        assert operator.put(path, json=values[-1]).status_code == 200


def test_every_setting_that_can_be_shown_and_changed_has_a_version(operator: httpx2.Client) -> None:
    paths = document()["paths"]
    assert {path for path, item in paths.items() if {"get", "put"} <= item.keys()} == {PROVIDERS, ROUTING, BUDGET}
    for path, item in paths.items():
        for method, operation in item.items() if path.startswith("/admin/") else ():
            offered = [parameter["name"] for parameter in operation.get("parameters", ())].count("If-Match")
            assert (offered, "412" in operation["responses"]) == (method == "put", method == "put"), (method, path)
        if path in {PROVIDERS, ROUTING, BUDGET}:
            assert operator.get(path).headers["ETag"] == operator.get(path).headers["ETag"]


@pytest.mark.parametrize(("path", "values"), SETTINGS)
def test_a_change_replaces_the_version_and_a_stale_one_is_refused(
    operator: httpx2.Client, restored: None, path: str, values: list[dict[str, Any]]
) -> None:
    first = operator.get(path).headers["ETag"]
    changed = operator.put(path, json=values[0], headers={"If-Match": first})
    assert (changed.status_code, changed.headers["ETag"]) == (200, operator.get(path).headers["ETag"])
    assert changed.headers["ETag"] != first
    for stale in (first, '"0"', "nonsense", ""):
        refused = operator.put(path, json=values[1], headers={"If-Match": stale})
        assert (refused.status_code, refused.json()["error"]) == (412, "precondition_failed"), stale
    assert operator.get(path).headers["ETag"] == changed.headers["ETag"]
    for named in (f"W/{changed.headers['ETag']}", f'"0", {operator.get(path).headers["ETag"]}', "*"):
        assert operator.put(path, json=values[0], headers={"If-Match": named}).status_code == 200


@pytest.mark.parametrize(("path", "values"), SETTINGS)
def test_of_two_concurrent_changes_of_a_version_one_is_made(
    operator: httpx2.Client, restored: None, path: str, values: list[dict[str, Any]]
) -> None:
    with ThreadPoolExecutor(2) as pool:
        for _ in range(5):
            assert operator.put(path, json=values[2]).status_code == 200
            version = {"If-Match": operator.get(path).headers["ETag"]}
            sent = [pool.submit(operator.put, path, json=value, headers=version) for value in values[:2]]
            answers = [request.result() for request in sent]
            assert sorted(answer.status_code for answer in answers) == [200, 412]
            (made,) = [answer for answer in answers if answer.status_code == 200]
            shown = operator.get(path)
            assert (shown.json(), shown.headers["ETag"]) == (made.json(), made.headers["ETag"])


def test_the_version_stays_after_a_restart(outpost: OutpostServer, operator: httpx2.Client, restored: None) -> None:
    version = operator.put(PROVIDERS, json={"disabled": {"m": ["b", "a", "c"]}}).headers["ETag"]
    outpost.kill()
    outpost.start()
    outpost.wait()
    assert operator.get(PROVIDERS).headers["ETag"] == version


def test_the_token_is_checked_before_the_version(outpost: OutpostServer) -> None:
    for path, values in SETTINGS:
        answer = httpx2.put(outpost.admin_url + path, json=values[0], headers={"If-Match": '"0"'})
        assert (answer.status_code, "ETag" in answer.headers) == (401, False)
