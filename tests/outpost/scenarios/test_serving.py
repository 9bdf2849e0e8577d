"""An outpost and a platform as processes: policy, callers, refusals."""

import subprocess
import sys
import time

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey
from tests.support.outpost_server import JWT_SECRET, OutpostServer, Trust, chat_body


def test_a_request_with_an_organization_key_is_answered_by_the_requested_model(outpost: OutpostServer) -> None:
    answer = outpost.ask("Hello, outpost")
    assert answer.status_code == 200, answer.text
    assert "Hello, outpost" in answer.json()["choices"][0]["message"]["content"]
    assert answer.headers["x-gateway-provider"] == "sandbox"


@pytest.mark.parametrize("key", ["gk_" + "0" * 40, "no.such.token", "text"])
def test_unknown_credentials_are_refused(outpost: OutpostServer, key: str) -> None:
    answer = outpost.ask(key=key)
    assert answer.status_code == 401
    assert answer.json()["error"]["type"] == "authentication_error"


def outpost_jwt(secret: str = JWT_SECRET, algorithm: str = "HS256", **claims: object) -> str:
    payload = {"sub": "batch job", "exp": int(time.time()) + 60, **claims}
    return jwt.encode({"alg": algorithm}, payload, OctKey.import_key(secret.encode()), algorithms=[algorithm])


def test_a_token_signed_with_the_outposts_jwt_secret_is_accepted(outpost: OutpostServer) -> None:
    assert outpost.ask(key=outpost_jwt()).status_code == 200


@pytest.mark.parametrize(
    "token",
    [
        outpost_jwt(secret="another secret, of somebody else's outpost"),
        outpost_jwt(exp=int(time.time()) - 60),
        outpost_jwt(algorithm="HS512"),
        outpost_jwt(exp=None),
        outpost_jwt(sub=None),
        ".".join(["eyJhbGciOiJub25lIn0", outpost_jwt().split(".")[1], ""]),
    ],
)
def test_a_foreign_or_expired_token_is_refused(outpost: OutpostServer, token: str) -> None:
    answer = outpost.ask(key=token)
    assert answer.status_code == 401, answer.text


def test_a_token_without_the_scope_chat_write_is_refused(outpost: OutpostServer) -> None:
    answer = outpost.ask(key=outpost_jwt(scope="api:read"))
    assert (answer.status_code, answer.json()["error"]["type"]) == (403, "authentication_error")


def test_a_token_of_a_user_is_valid_while_the_user_exists(trust: Trust, outpost: OutpostServer) -> None:
    with trust.admin() as admin:
        created = admin.post("/api/admin/users", json={"email": "leaver@example.com", "role": "user"})
        assert created.status_code == 201, created.text
        user = f"/api/admin/users/{created.json()['id']}"
        token = outpost_jwt(sub=created.json()["id"])
        _wait_for(200, outpost, token)
        assert admin.patch(user, json={"is_active": False}).status_code == 200
        refused = _wait_for(401, outpost, token)
        assert refused.json()["error"]["code"] == "invalid_token"
        assert admin.patch(user, json={"is_active": True}).status_code == 200
        _wait_for(200, outpost, token)
        assert admin.delete(user).status_code == 204
        _wait_for(401, outpost, token)


def _wait_for(status: int, outpost: OutpostServer, token: str) -> httpx2.Response:
    deadline = time.monotonic() + 60
    while (answer := outpost.ask(key=token)).status_code != status:
        assert time.monotonic() < deadline, answer.text
    return answer


def test_a_changed_rule_comes_into_force_without_a_restart(trust: Trust, outpost: OutpostServer) -> None:
    text = "the word is zanzibar"
    assert outpost.ask(text).status_code == 200
    config = {"keywords": ["zanzibar"]}
    rule = {"name": "z", "filter_type": "keyword_block", "config": config, "scope": "org", "priority": 5}
    with trust.admin() as admin:
        created = admin.post("/api/admin/content-filters/", json=rule)
        assert created.status_code == 201, created.text
        deadline = time.monotonic() + 60
        while outpost.ask(text).status_code == 200:
            assert time.monotonic() < deadline
        assert admin.delete(f"/api/admin/content-filters/{created.json()['id']}").status_code == 204


def test_a_stored_bundle_is_used_while_the_platform_is_unavailable(trust: Trust) -> None:
    with OutpostServer(trust) as outpost:
        assert outpost.ask().status_code == 200
        outpost.kill()
        outpost.environment["PLATFORM_MANAGEMENT_URL"] = "http://127.0.0.1:9"
        outpost.start()
        outpost.wait()
        assert outpost.ask().status_code == 200


def test_after_a_restart_the_first_poll_does_not_wait_for_a_change(trust: Trust) -> None:
    with OutpostServer(trust) as outpost:
        etag, deadline = outpost.home / "outpost" / "bundle.etag", time.monotonic() + 60
        while not (etag.exists() and etag.read_bytes()):
            assert time.monotonic() < deadline
        outpost.kill()
        outpost.start()
        outpost.wait()
        deadline = time.monotonic() + 60
        with outpost.admin() as operator:
            while (body := operator.get("/admin/api/status").json())["platform"]["heard_at"] is None:
                assert time.monotonic() < deadline, body
        assert body["policy"]["source"] == "kept"


def test_the_number_of_event_loop_tasks_is_a_metric(outpost: OutpostServer) -> None:
    assert outpost.process is not None
    name = f'service_event_loop_tasks{{pid="{outpost.process.pid}"}} '
    deadline, tasks = time.monotonic() + 60, 0.0
    while not tasks:
        lines = httpx2.get(outpost.url + "/metrics").text.splitlines()
        tasks = next((float(line.removeprefix(name)) for line in lines if line.startswith(name)), 0.0)
        assert time.monotonic() < deadline, lines


def test_a_second_process_with_the_same_home_directory_is_refused(outpost: OutpostServer) -> None:
    assert outpost.process is not None
    command = [sys.executable, "-P", "-m", "gatehouse", "serve", "outpost", "--port", "0", "--admin-port", "0"]
    process = subprocess.run(command, env=outpost.started_with, capture_output=True, text=True, timeout=60, check=False)
    assert process.returncode == 1
    assert f"in use by process {outpost.process.pid} at {outpost.url}; stop that process" in process.stderr
    # Only the owner can access the outpost's folder.
    assert (outpost.home / "outpost").stat().st_mode & 0o777 == 0o700
    assert outpost.ask().status_code == 200


def test_without_a_policy_bundle_requests_are_refused_with_503(trust: Trust) -> None:
    outpost = OutpostServer(trust, PLATFORM_MANAGEMENT_URL="http://127.0.0.1:9")
    outpost.start()
    try:
        answer = outpost.ask()
        assert answer.status_code == 503
        assert answer.json()["error"]["type"] == "service_unavailable"
        ready = httpx2.get(outpost.url + "/api/health/ready")
        assert (ready.status_code, ready.json()["reasons"]) == (503, ["no policy bundle is loaded"])
        assert httpx2.get(outpost.url + "/api/health/live").status_code == 200
    finally:
        outpost.__exit__()


def test_the_kill_switch_rejects_everything_until_it_is_released(outpost: OutpostServer) -> None:
    with outpost.admin() as admin:
        answer = admin.post("/admin/api/override/kill-switch", json={"active": True})
        assert (answer.status_code, answer.json()["active"]) == (200, True)
        for path, body in (("/v1/chat/completions", chat_body("x")), ("/v1/scan", {"text": "x", "model": "m"})):
            with outpost.client() as client:
                refused = client.post(path, json=body)
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "kill_switch_active")
        # It stays engaged after a restart.
        outpost.kill()
        outpost.start()
        assert outpost.ask().status_code == 503
        assert admin.post("/admin/api/override/kill-switch", json={"active": False}).json()["active"] is False
    assert outpost.ask().status_code == 200


def test_paths_without_v1_have_the_same_answers_as_paths_with_v1(outpost: OutpostServer) -> None:
    with outpost.client() as client:
        assert client.post("/chat/completions", json=chat_body("Hello")).status_code == 200
        assert client.get("/models").json() == client.get("/v1/models").json()


def test_an_unsupported_api_is_named_in_the_error_and_a_wrong_method_is_refused_with_405(
    outpost: OutpostServer,
) -> None:
    with outpost.client() as client:
        answer = client.post("/v1/videos", json={})
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_served")
        assert "Gatehouse does not serve videos" in answer.json()["error"]["message"]
        assert client.post("/v1/messages/batches", json={}).json()["type"] == "error"
        answer = client.get("/v1/chat/completions")
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
