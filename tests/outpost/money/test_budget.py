"""The outpost's own monthly budget, and the organization's budgets at an outpost."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from tests.support.outpost_server import OutpostServer, Trust

ROUTE = "/admin/api/budget"


@pytest.fixture(autouse=True)
def without_budget(operator: httpx2.Client) -> Iterator[None]:
    yield
    operator.put(ROUTE, json={"monthly_usd": None, "monthly_requests": None, "expires_at": None})


def spent(operator: httpx2.Client) -> int:
    """Returns the number of requests that the file records for the month."""
    operator.put(ROUTE, json={"monthly_requests": 10**9})
    spent_requests: int = operator.get(ROUTE).json()["spent_requests"]
    return spent_requests


def until(condition: Callable[[], Any], seconds: float = 20) -> Any:
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return value


def is_budget_exceeded(answer: httpx2.Response) -> None:
    error = answer.json()["error"]
    assert (answer.status_code, error["type"], error["code"]) == (429, "budget_exceeded", "budget_exceeded")
    assert answer.headers["X-Budget-Status"] == "exceeded"
    assert int(answer.headers["Retry-After"]) >= 1


def test_requests_are_answered_until_the_budget_is_spent(outpost: OutpostServer, operator: httpx2.Client) -> None:
    limit = spent(operator) + 2
    response = operator.put(ROUTE, json={"monthly_requests": limit})
    assert response.status_code == 200, response.text
    assert response.json()["source"] == "operator"
    assert [outpost.ask().status_code for _ in range(3)] == [200, 200, 429]
    is_budget_exceeded(outpost.ask())
    state = operator.get(ROUTE).json()
    assert (state["status"], state["spent_requests"], state["share_requests"]) == ("exceeded", limit, limit)
    assert "outpost.budget_set" in outpost.log
    operator.put(ROUTE, json={"monthly_requests": None})
    free = outpost.ask()
    assert (free.status_code, free.headers.get("X-Budget-Status")) == (200, None)
    assert operator.get(ROUTE).json()["status"] is None


def test_responses_have_a_warning_from_eighty_percent_on(outpost: OutpostServer, operator: httpx2.Client) -> None:
    used = spent(operator)
    operator.put(ROUTE, json={"monthly_requests": (used + 1) * 10})
    assert outpost.ask().headers["X-Budget-Status"] == "ok"
    operator.put(ROUTE, json={"monthly_requests": used + 2})
    assert outpost.ask().headers["X-Budget-Status"] == "warning"


def test_a_call_without_a_response_of_a_provider_costs_nothing(outpost: OutpostServer, operator: httpx2.Client) -> None:
    used = spent(operator)
    failed = outpost.ask(model="sandbox/status-503")
    assert (failed.status_code, failed.headers["X-Budget-Status"]) == (502, "ok")
    assert operator.get(ROUTE).json()["spent_requests"] == used


def test_dollars_are_reserved_before_a_call_and_settled_after_it(
    outpost: OutpostServer, operator: httpx2.Client
) -> None:
    operator.put(ROUTE, json={"monthly_usd": 1_000})
    before = operator.get(ROUTE).json()["spent_usd"]
    cost = float(outpost.ask().headers["X-Cost-USD"])
    assert cost > 0
    after = operator.get(ROUTE).json()["spent_usd"]
    assert after - before == pytest.approx(cost, abs=1e-8)
    # The remaining amount is less than the maximum cost of a call.
    operator.put(ROUTE, json={"monthly_usd": round(after + cost / 100, 9)})
    is_budget_exceeded(outpost.ask())


@pytest.fixture(scope="module")
def slow(outpost: OutpostServer, trust: Trust) -> str:
    """Yields a slow model without a price."""
    with trust.admin() as admin:
        model = {"provider": "sandbox", "model_id": "slow-1500ms"}
        created = admin.post("/api/admin/models/catalog", json=model)
        assert created.status_code == 201, created.text
    until(lambda: outpost.ask(model="sandbox/slow-1500ms").status_code == 200)
    return "sandbox/slow-1500ms"


def test_under_a_budget_in_dollars_a_model_without_a_price_is_refused(
    outpost: OutpostServer, operator: httpx2.Client, slow: str
) -> None:
    operator.put(ROUTE, json={"monthly_usd": 1_000})
    refused = outpost.ask(model=slow)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "price_unknown")
    assert outpost.ask().status_code == 200


def test_parallel_requests_use_the_whole_limit_and_never_exceed_it(
    outpost: OutpostServer, operator: httpx2.Client
) -> None:
    operator.put(ROUTE, json={"monthly_requests": spent(operator) + 20})
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: outpost.ask().status_code, range(60)))
    assert (answers.count(200), answers.count(429)) == (20, 40)


def test_spent_amounts_survive_a_kill(outpost: OutpostServer, operator: httpx2.Client) -> None:
    used = spent(operator)
    operator.put(ROUTE, json={"monthly_requests": used + 3})
    for number in range(3):
        assert outpost.ask().status_code == 200
        outpost.kill()
        outpost.start()
        outpost.wait()
        assert operator.get(ROUTE).json()["spent_requests"] == used + number + 1
    is_budget_exceeded(outpost.ask())


def test_a_call_that_a_kill_interrupts_counts_as_spent(
    outpost: OutpostServer, operator: httpx2.Client, slow: str
) -> None:
    used = spent(operator)
    with ThreadPoolExecutor(1) as pool:
        request = pool.submit(outpost.ask, model=slow)
        until(lambda: operator.get(ROUTE).json()["spent_requests"] == used + 1)
        outpost.kill()
        assert isinstance(request.exception(), httpx2.TransportError)
    outpost.start()
    outpost.wait()
    assert operator.get(ROUTE).json()["spent_requests"] == used + 1


def test_an_expired_budget_refuses_calls_until_it_is_set_again(outpost: OutpostServer, operator: httpx2.Client) -> None:
    end = datetime.now(UTC) + timedelta(seconds=1)
    response = operator.put(ROUTE, json={"expires_at": end.isoformat()})
    assert response.status_code == 200, response.text
    until(lambda: outpost.ask().status_code == 429, 5)
    is_budget_exceeded(outpost.ask())
    with outpost.client() as client:
        # Requests without a model call cost nothing.
        assert client.post("/v1/scan", json={"text": "x"}).status_code == 200
        assert client.get("/v1/models").status_code == 200
    assert operator.get(ROUTE).json()["status"] == "exceeded"
    operator.put(ROUTE, json={"expires_at": (end + timedelta(days=1)).isoformat()})
    assert outpost.ask().status_code == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"monthly_requests": -1}, "monthly_requests"),
        ({"monthly_requests": "100"}, "monthly_requests"),
        ({"monthly_usd": -0.5}, "monthly_usd"),
        ({"monthly_usd": "much"}, "monthly_usd"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({"expires_at": "soon"}, "expires_at"),
        ({"requests": 5}, "requests"),
        ({}, "monthly_requests"),
    ],
)
def test_an_invalid_budget_is_refused_by_field(operator: httpx2.Client, body: dict[str, Any], field: str) -> None:
    answer = operator.put(ROUTE, json=body)
    assert answer.status_code == 422, answer.text
    assert field in answer.text


def test_the_settings_set_the_budget_until_an_operator_changes_it(trust: Trust) -> None:
    limits = {"BUDGET_MONTHLY_REQUESTS": "1", "BUDGET_MONTHLY_USD": "12.5"}
    with OutpostServer(trust, **limits) as outpost, outpost.admin() as operator:
        state = operator.get(ROUTE).json()
        assert (state["monthly_requests"], state["monthly_usd"], state["source"]) == (1, 12.5, "settings")
        assert state["ignored_settings"] == []
        assert [outpost.ask().status_code for _ in range(2)] == [200, 429]
        # With null there is no budget, whatever the settings are. This is also so after a restart.
        operator.put(ROUTE, json={"monthly_requests": None})
        outpost.kill()
        outpost.start()
        outpost.wait()
        assert outpost.ask().status_code == 200
        state = operator.get(ROUTE).json()
        assert (state["source"], state["ignored_settings"]) == (
            "operator", ["BUDGET_MONTHLY_USD", "BUDGET_MONTHLY_REQUESTS"]
        )  # fmt: skip


def test_a_damaged_file_of_spent_amounts_prevents_the_start(trust: Trust) -> None:
    with OutpostServer(trust, BUDGET_MONTHLY_REQUESTS="5") as outpost:
        outpost.ask()
        outpost.kill()
        file = outpost.home / "outpost" / "spent"
        content = file.read_bytes()
        file.write_bytes(content[:30] + b"x" + content[31:])
        with pytest.raises(AssertionError, match="it has the spent amounts"):
            outpost.start()
        outpost.process = None
        file.write_bytes(content)
        outpost.start()
        outpost.wait()


def test_two_outposts_do_not_spend_from_one_home(trust: Trust, outpost: OutpostServer) -> None:
    second = OutpostServer(trust, GATEHOUSE_HOME=str(outpost.home), OUTPOST_ID=str(outpost.id))
    try:
        with pytest.raises(AssertionError, match="is in use by process"):
            second.start()
    finally:
        second.kill()
    assert outpost.ask().status_code == 200


class TestTheOrganizations:
    """The organization's budgets, which are part of the bundle."""

    @pytest.fixture
    def budget(self, trust: Trust) -> Iterator[Callable[..., str]]:
        """Yields a function that creates budgets. They are deleted at the end of the test."""
        budget_ids: list[str] = []

        def make(**fields: Any) -> str:
            with trust.admin() as admin:
                answer = admin.post("/api/admin/budgets", json={"scope_type": "tenant", "period": "day", **fields})
                assert answer.status_code == 201, answer.text
                budget_ids.append(answer.json()["id"])
                return budget_ids[-1]

        yield make
        with trust.admin() as admin:
            for item in budget_ids:
                admin.delete(f"/api/admin/budgets/{item}")

    def test_budgets_apply_to_the_amounts_of_this_outpost(
        self, outpost: OutpostServer, trust: Trust, budget: Callable[..., str]
    ) -> None:
        budget_id = budget(limit_requests=3)
        with trust.admin() as admin:
            # A new budget includes the amounts that the organization has used today.
            before = admin.get(f"/api/admin/budgets/{budget_id}").json()["current"]["spent_requests"]
        until(lambda: "X-Budget-Limit-Requests" in outpost.ask().headers)
        refused = until(lambda: (answer := outpost.ask()).status_code == 429 and answer)
        error = refused.json()["error"]
        assert (error["type"], error["code"], error["tier"]) == ("rate_limit_error", "quota_exceeded", "tenant:day")
        assert int(refused.headers["X-RateLimit-Reset"]) > time.time()
        # The budget also applies after a restart.
        outpost.kill()
        outpost.start()
        outpost.wait()
        assert outpost.ask().status_code == 429
        # The platform counts the amounts in the records.
        with trust.admin() as admin:
            until(
                lambda: admin.get(f"/api/admin/budgets/{budget_id}").json()["current"]["spent_requests"] == before + 3
            )
            admin.put(f"/api/admin/budgets/{budget_id}", json={"limit_requests": 1_000})
        until(lambda: outpost.ask().status_code == 200)

    def test_budgets_that_only_warn_refuse_nothing(self, outpost: OutpostServer, budget: Callable[..., str]) -> None:
        budget(limit_requests=1, action="warn")
        until(lambda: "X-Budget-Limit-Requests" in outpost.ask().headers)
        answer = outpost.ask()
        assert (answer.status_code, answer.headers["X-Budget-Remaining-Requests"]) == (200, "0")

    def test_the_feature_flag_disables_budgets_except_the_outposts_own(
        self, outpost: OutpostServer, operator: httpx2.Client, trust: Trust, budget: Callable[..., str]
    ) -> None:
        budget(limit_requests=1)
        until(lambda: outpost.ask().status_code == 429)
        flag = "/api/v1/admin/org/feature-flags/budget_enforcement"
        with trust.admin() as admin:
            try:
                admin.patch(flag, json={"enabled": False})
                until(lambda: outpost.ask().status_code == 200)
                operator.put(ROUTE, json={"monthly_requests": spent(operator) + 1})
                assert outpost.ask().status_code == 200
                is_budget_exceeded(outpost.ask())
            finally:
                admin.patch(flag, json={"enabled": True})
