"""The outpost's administration API: access, overrides and their effect on requests, status, configuration."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from tests.support.outpost_server import ADMIN_TOKEN, OutpostServer, Trust, until

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.outpost.admin.app import document

ADMIN = [(path, method) for path, item in document()["paths"].items() if path.startswith("/admin/") for method in item]


@pytest.mark.parametrize("token", [None, "another token, of somebody else"])
@pytest.mark.parametrize(("path", "method"), ADMIN)
def test_calls_without_the_admin_token_are_refused(
    outpost: OutpostServer, path: str, method: str, token: str | None
) -> None:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    answer = httpx2.request(method.upper(), outpost.admin_url + path, json={}, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized")


def test_every_response_has_the_requests_id_and_is_not_cached(outpost: OutpostServer, operator: httpx2.Client) -> None:
    for path, status in (("/admin/api/status", 200), ("/nowhere", 404), ("/peer/id", 404)):
        answer = operator.get(path, headers={"X-Request-Id": "mine-1"})
        assert answer.status_code == status
        assert (answer.headers["X-Request-Id"], answer.headers["Cache-Control"]) == ("mine-1", "no-store")


def test_an_api_key_is_refused_as_the_admin_token(outpost: OutpostServer, trust: Trust) -> None:
    headers = {"Authorization": f"Bearer {trust.server.key}"}
    assert httpx2.get(outpost.admin_url + "/admin/api/status", headers=headers).status_code == 401


def test_without_a_configured_token_all_calls_are_refused(trust: Trust) -> None:
    with OutpostServer(trust, OUTPOST_ADMIN_TOKEN="") as outpost:
        for shown in ("None", "null"):
            headers = {"Authorization": f"Bearer {shown}"}
            assert httpx2.get(outpost.admin_url + "/admin/api/status", headers=headers).status_code == 401


def test_guesses_are_limited_and_an_operators_kill_switch_is_not(trust: Trust) -> None:
    """The kill switch is limited neither by calls of the operator nor by calls of a stranger at the same address."""
    status, switch = "/admin/api/status", "/admin/api/override/kill-switch"
    with OutpostServer(trust, RATE_LIMIT_ADMIN_PER_MINUTE="3") as outpost, outpost.admin() as operator:
        wrong = {"Authorization": "Bearer a guess of somebody"}
        guesses = [
            httpx2.request(method, outpost.admin_url + path, json=body, headers=wrong)
            for method, path, body in (("GET", status, None), ("POST", switch, {"active": True})) * 3
        ]
        assert [answer.status_code for answer in guesses] == [401] * 3 + [429] * 3
        assert all(0 < int(answer.headers["Retry-After"]) <= 60 for answer in guesses[3:])
        # Wrong tokens do not count against the operator's limit.
        assert [operator.get(status).status_code for _ in range(4)] == [200] * 3 + [429]
        for active in (True, False, True, False, True):
            answer = operator.post(switch, json={"active": active})
            assert (answer.status_code, answer.json()["active"]) == (200, active)
        assert outpost.ask().json()["error"]["code"] == "kill_switch_active"


async def answered(url: str, head: str) -> bytes:
    """Returns the response to a request of which only the first byte of the body is sent."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(f"{head}\r\n\r\n{{".encode())
        return await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
    finally:
        writer.close()


async def test_the_body_of_a_stranger_is_not_read(outpost: OutpostServer) -> None:
    """The body is not stored in memory either, because the proxy's requests need the memory of the process."""
    for sent, status in (
        ("POST /admin/config/import", b"401"),
        ("PUT /admin/api/budget", b"401"),
        ("POST /nowhere", b"401"),
        ("POST /peer/state", b"413"),
    ):
        head = f"{sent} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99999999"
        answer = await answered(outpost.admin_url, head)
        assert answer.split(b" ")[1] == status, answer
        assert b"connection: close" in answer.lower()


async def test_the_body_of_an_operator_is_limited_in_size_and_time(trust: Trust) -> None:
    with OutpostServer(trust, MAX_REQUEST_BYTES="4096", BODY_TIMEOUT_SECONDS="1") as outpost:
        for length, status in ((5000, b"413"), (4000, b"408")):
            head = (
                f"POST /admin/config/import HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {length}"
            )
            answer = await answered(outpost.admin_url, head)
            assert answer.split(b" ")[1] == status, answer


def test_the_proxys_port_has_no_administration(outpost: OutpostServer, operator: httpx2.Client) -> None:
    answer = httpx2.get(outpost.url + "/admin/api/status", headers=dict(operator.headers))
    assert answer.status_code == 404


@pytest.mark.parametrize(
    ("path", "method", "body", "field"),
    [
        ("/admin/api/override/kill-switch", "POST", {}, "active"),
        ("/admin/api/override/kill-switch", "POST", {"active": "yes"}, "active"),
        ("/admin/api/override/providers", "PUT", {"disabled": {"gpt": "sandbox"}}, "disabled"),
        ("/admin/api/override/providers", "PUT", {}, "disabled"),
        ("/admin/api/override/routing", "PUT", {"routes": {"gpt": "no-provider"}}, "routes"),
        ("/admin/api/override/routing", "PUT", {"routes": {}, "rotues": {}}, "rotues"),
        ("/admin/config/import", "POST", {}, "version"),
        ("/admin/config/import", "POST", {"version": "2.0"}, "version"),
        ("/admin/config/import", "POST", {"version": "1.0", "overrides": {"routes": 3}}, "overrides.routes"),
        ("/admin/config/import", "POST", {"version": "1.0", "overrides": {"routes": {"gpt": "none"}}}, "routes.gpt"),
        ("/admin/config/import", "POST", {"version": "1.0", "overrides": {"disabled": {"": [""]}}}, "overrides"),
        ("/admin/config/import", "POST", {"version": "1.0", "overrides": {"elsewhere": {}}}, "overrides.elsewhere"),
        ("/admin/config/import", "POST", {"version": "1.0", "overrides": None}, "overrides"),
    ],
)
def test_an_invalid_body_is_refused_by_field(
    operator: httpx2.Client, path: str, method: str, body: dict[str, Any], field: str
) -> None:
    answer = operator.request(method, path, json=body)
    assert answer.status_code == 422, answer.text
    assert field in answer.text


def test_a_shown_object_can_be_sent_back_and_read_only_fields_stay(operator: httpx2.Client) -> None:
    path = "/admin/api/override/providers"
    shown = operator.get(path).json()
    assert operator.put(path, json=shown).status_code == 200
    refused = operator.put(path, json={**shown, "unknown": ["elsewhere"]})
    assert (refused.status_code, "unknown" in refused.text) == (422, True), refused.text
    assert operator.get(path).json() == shown


def test_an_unknown_query_parameter_is_refused_by_name(operator: httpx2.Client) -> None:
    for path in ("/admin/api/status", "/admin/audit/export"):
        refused = operator.get(path, params={"unsnet": "true"})
        assert (refused.status_code, "unsnet" in refused.text) == (422, True), refused.text


def test_an_import_with_a_misspelt_parameter_is_refused(operator: httpx2.Client) -> None:
    body = {"version": "1.0", "overrides": {"routes": {"gpt": "no/body"}}}
    refused = operator.post("/admin/config/import", params={"dry-run": "true"}, json=body)
    assert (refused.status_code, "dry-run" in refused.text) == (422, True), refused.text
    assert operator.get("/admin/api/override/routing").json()["routes"] == {}


def test_a_malformed_place_in_the_export_is_refused_by_name(operator: httpx2.Client) -> None:
    for place in ("x", "1/2/3", "a%00b"):
        refused = operator.get("/admin/audit/export", params={"after": place})
        assert (refused.status_code, "after" in refused.text) == (422, True), refused.text


def test_a_provider_is_disabled_for_one_model_or_for_all(outpost: OutpostServer, operator: httpx2.Client) -> None:
    for disabled, echo, slow in (
        ({"echo": ["sandbox"]}, 503, 200),
        ({"sandbox/echo": ["sandbox", "other"]}, 503, 200),
        ({"*": ["sandbox"]}, 503, 503),
        ({"*": ["other"]}, 200, 200),
        ({}, 200, 200),
    ):
        answer = operator.put("/admin/api/override/providers", json={"disabled": disabled})
        unknown = ["other"] if "other" in answer.request.content.decode() else []
        assert answer.json() == {
            "disabled": {model: sorted(out) for model, out in disabled.items()}, "unknown": unknown
        }  # fmt: skip
        results = [outpost.ask(model=model) for model in ("sandbox/echo", "sandbox/slow-200ms", "echo")]
        assert [item.status_code for item in results] == [echo, slow, echo]
        assert {item.json()["error"]["type"] for item in results if item.status_code == 503} <= {"providers_disabled"}


def test_a_model_may_be_routed_to_another_entry(outpost: OutpostServer, operator: httpx2.Client) -> None:
    routes = {"gpt-of-somebody": "sandbox/echo", "sandbox/slow-200ms": "gone/model"}
    answer = operator.put("/admin/api/override/routing", json={"routes": routes})
    assert answer.json() == {"routes": routes, "unknown": ["gone/model"]}
    try:
        assert outpost.ask(model="gpt-of-somebody").headers["x-gateway-model"] == "echo"
        refused = outpost.ask(model="sandbox/slow-200ms")
        assert (refused.status_code, refused.json()["error"]["type"]) == (503, "override_error")
        # They are still set after a restart.
        outpost.kill()
        outpost.start()
        outpost.wait()
        assert outpost.ask(model="gpt-of-somebody").status_code == 200
        assert operator.get("/admin/api/override/routing").json()["routes"] == routes
    finally:
        operator.put("/admin/api/override/routing", json={"routes": {}})
    assert outpost.ask(model="gpt-of-somebody").status_code == 404


def test_concurrent_overrides_do_not_undo_each_other(operator: httpx2.Client) -> None:
    providers, routing = "/admin/api/override/providers", "/admin/api/override/routing"
    try:
        with ThreadPoolExecutor(2) as pool:
            for number in range(5):
                disabled, routes = {f"model-{number}": ["nobody"]}, {f"model-{number}": "no/body"}
                sent = [pool.submit(operator.put, providers, json={"disabled": disabled})]
                sent.append(pool.submit(operator.put, routing, json={"routes": routes}))
                assert [sent_request.result().status_code for sent_request in sent] == [200, 200]
                assert operator.get(providers).json()["disabled"] == disabled
                assert operator.get(routing).json()["routes"] == routes
    finally:
        operator.put(providers, json={"disabled": {}})
        operator.put(routing, json={"routes": {}})


def test_the_status_has_the_documented_fields(outpost: OutpostServer, operator: httpx2.Client, trust: Trust) -> None:
    status = operator.get("/admin/api/status").json()
    assert status["outpost_id"] == str(outpost.id)
    assert status["ready"] is True
    assert status["policy"]["source"] in {"platform", "kept"}
    assert status["policy"]["version"] > 0
    assert status["policy"]["fault"] is None
    assert status["platform"]["url"] == trust.server.url
    assert status["certificate"]["serial"] in trust.serials[outpost.id]
    assert status["kill_switch"]["active"] is False


def test_an_exported_configuration_can_be_imported_again(operator: httpx2.Client, trust: Trust) -> None:
    routes = {"somebody-s": "sandbox/echo"}
    operator.put("/admin/api/override/routing", json={"routes": routes})
    exported = operator.get("/admin/config/export").json()
    assert exported["version"] == "1.0"
    assert exported["patterns"] == [pattern.id for pattern in BUILT_IN]
    assert exported["overrides"]["routes"] == routes
    assert trust.server.key not in json.dumps(exported)
    operator.put("/admin/api/override/routing", json={"routes": {}})
    for dry_run, result in (("true", {}), ("false", routes)):
        answer = operator.post("/admin/config/import", params={"dry_run": dry_run}, json={**exported, "later": 1})
        assert answer.status_code == 200, answer.text
        assert answer.json()["imported"] == ["overrides"]
        assert answer.json()["skipped"].keys() >= {"patterns", "dlp_rules", "content_filters", "later"}
        assert operator.get("/admin/api/override/routing").json()["routes"] == result
    operator.put("/admin/api/override/routing", json={"routes": {}})


def exported(operator: httpx2.Client) -> list[dict[str, Any]]:
    answer = operator.get("/admin/audit/export")
    assert answer.status_code == 200, answer.text
    return [json.loads(text) for text in answer.text.splitlines()]


def test_operators_calls_are_in_the_audit_export_and_on_the_platform(trust: Trust) -> None:
    """Calls before the first policy are also recorded."""
    outpost = OutpostServer(trust, PLATFORM_MANAGEMENT_URL="http://127.0.0.1:9")
    outpost.start()
    try:
        with outpost.admin() as operator:
            for active in (True, False):
                assert operator.post("/admin/api/override/kill-switch", json={"active": active}).status_code == 200
            calls = exported(operator)
        assert [(call["type"], call["call"], call["details"]) for call in calls] == [
            ("operated", "kill_switch", {"active": True}),
            ("operated", "kill_switch", {"active": False}),
        ]
        assert {(call["ip"], call["tenant_id"], call["handed_in"]) for call in calls} == {("127.0.0.1", None, False)}
        assert all(call["timestamp"].endswith("Z") for call in calls)
        outpost.kill()
        del outpost.environment["PLATFORM_MANAGEMENT_URL"]
        outpost.start()
        outpost.wait()
        with outpost.admin() as operator:
            operator.put("/admin/api/override/routing", json={"routes": {"gpt-4o": "sandbox/echo"}})
            operator.put("/admin/api/override/providers", json={"disabled": {"gpt-4o": ["azure"]}})
            operator.put("/admin/api/budget", json={"monthly_requests": 1000})
        query = (
            "SELECT details FROM audit_events WHERE action = 'outpost.operated' AND resource_id = %s ORDER BY sequence"
        )
        rows = until(lambda: len(rows := trust.server.sql(query, [str(outpost.id)])) == 5 and rows)
        assert [row[0] for row in rows] == [
            {"call": "kill_switch", "active": True},
            {"call": "kill_switch", "active": False},
            {"call": "routing_overrides", "count": 1, "models": "gpt-4o"},
            {"call": "provider_overrides", "count": 1, "models": "gpt-4o"},
            {"call": "budget", "monthly_usd": None, "monthly_requests": 1000, "expires_at": None},
        ]
    finally:
        outpost.__exit__()
