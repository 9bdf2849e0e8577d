"""Providers' credentials from the platform to the provider: sealed, decrypted, used, and never shown."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tests.support.outpost_server import OutpostServer, Trust

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.secrets import ecies
from gatehouse.outpost.policy.sealed_credentials import open_credentials
from gatehouse.policy.bundles.contents import KIND, PolicyBundle, sealing_context
from gatehouse.policy.catalog import TenantRecords

SECRET = "sk-sealed-on-its-way-0123456789"
RENEWED = "sk-the-next-one-9876543210"


class Upstream(BaseHTTPRequestHandler):
    """An OpenAI-compatible provider that records the API keys of its calls."""

    seen: ClassVar[list[str]] = []
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append(self.headers.get("Authorization", ""))
        message = {"role": "assistant", "content": "hello"}
        answer = {
            "id": "1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }  # fmt: skip
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture(scope="module")
def provider(trust: Trust) -> Iterator[None]:
    """Yields the organization's own endpoint. The organization sends its key to the outposts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    byoe = {
        "id": "own-place", "name": "Own", "base_url": f"http://127.0.0.1:{server.server_port}/v1", "format": "openai",
        "api_key": SECRET,
        "models": [
            {
                "model_id": "m", "display_name": "M", "context_window": 8_000, "input_cost_per_1k": 1,
                "output_cost_per_1k": 1,
            }
        ],
    }  # fmt: skip
    with trust.admin() as admin:
        created = admin.post("/api/admin/providers/byoe", json=byoe)
        assert created.status_code == 201, created.text
    send(trust, "sealed")
    yield
    send(trust, "off")
    with trust.admin() as admin:
        assert admin.delete("/api/admin/providers/byoe/own-place").status_code == 204
    server.shutdown()
    server.server_close()


def send(trust: Trust, value: str) -> None:
    with trust.admin() as admin:
        answer = admin.put("/api/admin/config/outpost_provider_credentials", json={"value": value})
        assert answer.status_code == 200, answer.text


def used(outpost: OutpostServer) -> str:
    answer = outpost.ask(model="own-place/m")
    assert answer.status_code == 200, answer.text
    return Upstream.seen[-1]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def unopened(outpost: OutpostServer) -> list[str]:
    with outpost.admin() as operator:
        credentials_unopened: list[str] = operator.get("/admin/api/status").json()["policy"]["credentials_unopened"]
        return credentials_unopened


def kept_files(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.usefixtures("provider")
def test_a_provider_is_called_with_sealed_credentials(trust: Trust) -> None:
    with OutpostServer(trust) as outpost:
        assert used(outpost) == f"Bearer {SECRET}"
        with outpost.admin() as admin:
            results = [admin.get(path).text for path in ("/admin/api/status", "/admin/config/export")]
        assert json.loads(results[0])["policy"]["credentials_unopened"] == []
        assert SECRET not in "".join(results) + outpost.log
        assert SECRET.encode() not in kept_files(outpost.home)
        # The stored credentials can be decrypted after a restart without the platform.
        outpost.kill()
        outpost.environment["PLATFORM_MANAGEMENT_URL"] = "http://127.0.0.1:9"
        outpost.start()
        outpost.wait()
        assert used(outpost) == f"Bearer {SECRET}"


@pytest.mark.usefixtures("provider")
def test_credentials_of_the_environment_take_precedence(trust: Trust) -> None:
    with OutpostServer(trust, PROVIDER_OWN_PLACE_API_KEY="sk-of-this-machine") as outpost:
        assert used(outpost) == "Bearer sk-of-this-machine"


@pytest.mark.usefixtures("provider")
def test_sealed_credentials_work_after_a_renewal_and_a_change(trust: Trust) -> None:
    with OutpostServer(trust) as outpost:
        assert used(outpost) == f"Bearer {SECRET}"
        outpost.enrol()
        until(lambda: "outpost.certificate_renewed" in outpost.log)
        assert used(outpost) == f"Bearer {SECRET}"
        with trust.admin() as admin:
            changed = admin.patch("/api/admin/providers/byoe/own-place", json={"api_key": RENEWED})
            assert changed.status_code == 200, changed.text
            until(lambda: used(outpost) == f"Bearer {RENEWED}")
            with outpost.admin() as operator:
                assert operator.get("/admin/api/status").json()["policy"]["credentials_unopened"] == []
            changed = admin.patch("/api/admin/providers/byoe/own-place", json={"api_key": SECRET})
            assert changed.status_code == 200, changed.text


@pytest.mark.usefixtures("provider")
def test_credentials_sealed_to_a_lost_key_are_reported_and_fetched_again(trust: Trust) -> None:
    with OutpostServer(trust) as outpost:
        assert used(outpost) == f"Bearer {SECRET}"
        outpost.kill()
        # After the restart the outpost has no former key, and the platform is unavailable.
        outpost.enrol()
        outpost.environment["PLATFORM_MANAGEMENT_URL"] = "http://127.0.0.1:9"
        outpost.start()
        outpost.wait()
        with outpost.admin() as operator:
            status = operator.get("/admin/api/status").json()["policy"]
        assert (status["source"], status["credentials_unopened"]) == ("kept", ["own-place"])
        assert used(outpost) != f"Bearer {SECRET}"
        assert outpost.ask().status_code == 200
        outpost.kill()
        del outpost.environment["PLATFORM_MANAGEMENT_URL"]
        outpost.start()
        outpost.wait()
        until(lambda: used(outpost) == f"Bearer {SECRET}")


@pytest.mark.usefixtures("provider")
def test_sealed_credentials_work_across_an_air_gap_and_a_renewal(trust: Trust) -> None:
    outpost = OutpostServer(trust, OUTPOST_AIRGAP="true")
    bundle, keys = outpost.home / "carried.jws", outpost.home / "carried.json"
    outpost.environment.update(OUTPOST_BUNDLE_PATH=str(bundle), OUTPOST_KEYS_PATH=str(keys))
    assert outpost.fetch(bundle, keys).returncode == 0
    with outpost:
        assert used(outpost) == f"Bearer {SECRET}"
        # The bundle arrives before the certificate to whose key it is sealed.
        paths = outpost.certificate, outpost.key
        outpost.certificate, outpost.key = outpost.home / "renewed.pem", outpost.home / "renewed.key"
        outpost.enrol()
        assert outpost.fetch(bundle, keys).returncode == 0
        until(lambda: unopened(outpost) == ["own-place"])
        outpost.key.replace(paths[1])
        outpost.certificate.replace(paths[0])
        until(lambda: unopened(outpost) == [])
        assert used(outpost) == f"Bearer {SECRET}"


def test_credentials_are_decrypted_with_the_former_key_and_not_shown() -> None:
    outpost_id, tenant_id = UUID(int=1), TenantId(UUID(int=2))
    former, present, stranger = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    bundle = PolicyBundle(
        kind=KIND, version=1, issued_at=1, expires_at=2, outpost_id=outpost_id, tenant_id=tenant_id,
        policy=TenantRecords(tenant_id=tenant_id, revision=1),
        credentials={
            name: ecies.seal(clear, to.public_key(), context=sealing_context(outpost_id, tenant_id, name))
            for name, clear, to in (
                ("a", b'{"api_key": "one"}', former),
                ("b", b'{"api_key": "two"}', present),
                ("c", b'{"api_key": "three"}', stranger),
                ("d", b"no object", present),
            )
        },
    )  # fmt: skip
    result = open_credentials(bundle, (present, former))
    assert (result.of("a"), result.of("b"), result.of("c")) == ({"api_key": "one"}, {"api_key": "two"}, None)
    assert result.unopened == ("c", "d")
    assert "one" not in repr(result)
    assert open_credentials(bundle, ()).unopened == ("a", "b", "c", "d")
