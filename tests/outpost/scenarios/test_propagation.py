"""Changes on the platform, and the times at which they are confirmed by outposts."""

import time
from typing import Any
from uuid import UUID

import httpx2
from tests.support.outpost_server import OutpostServer, Trust
from tests.support.server import ADMIN_PASSWORD as PASSWORD


def until(condition: Any, seconds: float = 20) -> Any:
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return value


def newest(admin: httpx2.Client, outpost: UUID, topic: str) -> dict[str, Any] | None:
    """Returns the confirmation of a topic's newest change by the outpost, or None if it is not confirmed."""
    answer = admin.get("/api/v1/admin/kill-switch/propagation")
    assert answer.status_code == 200, answer.text
    change = next(change for change in answer.json()["changes"] if change["topic"] == topic)
    result = next((item for item in change["outposts"] if item["outpost_id"] == str(outpost)), None)
    return result if result is not None and result["confirmed_at"] is not None else None


def test_a_kill_switch_reaches_every_outpost_and_the_time_is_reported(trust: Trust, outpost: OutpostServer) -> None:
    with OutpostServer(trust) as second, trust.admin() as admin:
        outposts = (outpost, second)
        providers = admin.get("/api/v1/admin/kill-switch/providers").json()
        models = [model for provider in providers if provider["provider"] == "sandbox" for model in provider["models"]]
        echo = next(model["id"] for model in models if model["model_id"] == "echo")
        assert [outpost.ask().status_code for outpost in outposts] == [200, 200]
        off = admin.post(f"/api/v1/admin/kill-switch/models/{echo}/disable", json={"reason": "other"})
        assert off.status_code == 200, off.text
        for item in outposts:
            refused = until(lambda item=item: (answer := item.ask()).status_code == 503 and answer)
            assert refused.json()["error"]["type"] == "provider_unavailable"
            reached = until(lambda item=item: newest(admin, item.id, "switch"))
            assert reached["elapsed_ms"] >= 0
        report = admin.get("/api/v1/admin/kill-switch/propagation").json()
        seen = {outpost["outpost_id"]: outpost for outpost in report["outposts"]}
        for item in outposts:
            assert seen[str(item.id)]["version"] >= report["changes"][0]["revision"]
            assert seen[str(item.id)]["certificate_serial"] in trust.serials[item.id]
        on = admin.post(f"/api/v1/admin/kill-switch/models/{echo}/enable")
        assert on.status_code == 200, on.text
        until(lambda: all(outpost.ask().status_code == 200 for outpost in outposts))


def test_a_change_that_does_not_concern_an_outpost_is_confirmed(trust: Trust, outpost: OutpostServer) -> None:
    """The end of a session does not concern an outpost. Without the confirmation the outpost would look delayed."""
    with trust.admin() as admin:
        created = admin.post("/api/auth/login", json={"email": "root@gatehouse.test", "password": PASSWORD})
        assert created.status_code == 200, created.text
        out = httpx2.post(
            trust.server.url + "/api/auth/logout", headers={"Authorization": f"Bearer {created.json()['access_token']}"}
        )
        assert out.status_code < 300, out.text
        until(lambda: newest(admin, outpost.id, "revocation"))


def test_the_expiry_of_each_outposts_certificate_is_a_metric(trust: Trust, outpost: OutpostServer) -> None:
    def ends(url: str) -> float | None:
        name = f'service_outpost_mtls_cert_expiry_timestamp_seconds{{outpost_id="{outpost.id}"}} '
        lines = httpx2.get(url + "/metrics").text.splitlines()
        return next((float(line.removeprefix(name)) for line in lines if line.startswith(name)), None)

    expiries = until(lambda: ends(outpost.url))
    assert 4 * 86_400 < expiries - time.time() < 6 * 86_400
    assert until(lambda: ends(trust.server.url)) == expiries


def test_a_polling_outpost_is_refused_immediately_after_its_revocation(trust: Trust) -> None:
    with OutpostServer(trust) as outpost, outpost.admin() as operator:
        until(lambda: operator.get("/admin/api/status").json()["platform"]["heard_at"])
        trust.serials[outpost.id] = []
        trust.tell()
        fault = until(lambda: operator.get("/admin/api/status").json()["platform"]["fault"], 10)
        assert "401" in fault
        # Its policy stays active: a revoked outpost continues to serve requests.
        assert outpost.ask().status_code == 200


def test_a_renewed_certificate_is_used_without_a_restart(trust: Trust) -> None:
    with OutpostServer(trust) as outpost, outpost.admin() as operator:
        old = operator.get("/admin/api/status").json()["certificate"]["serial"]
        new = outpost.enrol(days=8)
        until(lambda: operator.get("/admin/api/status").json()["certificate"]["serial"] == new)
        trust.serials[outpost.id] = [new]
        trust.tell()

        def serial_numbers(admin: httpx2.Client) -> dict[str, str]:
            """Returns the serial number of the certificate in the last poll of each outpost."""
            report = admin.get("/api/v1/admin/kill-switch/propagation").json()
            return {row["outpost_id"]: row["certificate_serial"] for row in report["outposts"]}

        rule = {"detector_name": "x", "detector_type": "regex", "entity_type": "x", "action_tier": "log_only"}
        with trust.admin() as admin:
            # A change ends the current long poll. The next poll uses the new certificate.
            created = admin.post("/api/admin/dlp-rules/", json={**rule, "config_json": {"pattern": "x{9}"}})
            assert created.status_code == 201, created.text
            until(lambda: serial_numbers(admin).get(str(outpost.id)) == new)
            admin.delete(f"/api/admin/dlp-rules/{created.json()['id']}")
        assert old != new
        assert operator.get("/admin/api/status").json()["platform"]["fault"] is None
