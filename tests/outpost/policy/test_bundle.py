"""Invalid bundles are refused. The former bundle stays active, and the status shows the reason."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest
from tests.support.fake_platform import TENANT, FakePlatform
from tests.support.outpost_server import OutpostServer

from gatehouse.foundation import jwt
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.jwt import SigningKey
from gatehouse.outpost.policy.bundle import BundleStore
from gatehouse.policy.bundles import signing
from gatehouse.policy.catalog import TenantRecords

STRANGER = SigningKey.generate()
#: another organization
OTHERS = TenantId(UUID(int=99))


@pytest.fixture(scope="module")
def platform() -> Iterator[FakePlatform]:
    with FakePlatform() as running:
        yield running


@pytest.fixture
def fresh(platform: FakePlatform) -> Iterator[OutpostServer]:
    """Yields an outpost with the active version 10, which refuses `zanzibar`."""
    server = OutpostServer(platform)  # type: ignore[arg-type]
    platform.send(platform.bundle(server.id, 10, blocked="zanzibar"))
    with server as running:
        yield running


@pytest.fixture(scope="module")
def running(platform: FakePlatform) -> Iterator[OutpostServer]:
    server = OutpostServer(platform)  # type: ignore[arg-type]
    platform.send(platform.bundle(server.id, 10))
    with server:
        yield server


@pytest.fixture
def outpost(platform: FakePlatform, running: OutpostServer) -> OutpostServer:
    """Yields an outpost with the active version 10, for tests that do not change its version."""
    before = policy(running)["activated_at"]
    platform.send(platform.bundle(running.id, 10, blocked="zanzibar"))
    until(lambda: (status := policy(running))["fault"] is None and status["activated_at"] > before)
    return running


def policy(outpost: OutpostServer) -> dict[str, Any]:
    with outpost.admin() as operator:
        policy_status: dict[str, Any] = operator.get("/admin/api/status").json()["policy"]
        return policy_status


def until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return value


def truncated(signed: str) -> str:
    return signed[: len(signed) // 2]


def changed(signed: str) -> str:
    """Returns the bundle with one changed bit in its content and the old signature."""
    head, body, signature = signed.split(".")
    place = len(body) // 2
    return ".".join([head, body[:place] + ("A" if body[place] != "A" else "B") + body[place + 1 :], signature])


def unsigned(signed: str) -> str:
    return ".".join(["eyJhbGciOiJub25lIn0", signed.split(".")[1], ""])


#: Fields of an invalid bundle of version 11, and the reason in the status.
CONTENTS: dict[str, tuple[dict[str, Any], str]] = {
    "of another outpost": ({"outpost_id": uuid4()}, "it is for outpost"),
    "of an older version": ({"version": 9}, "its version 9 is older than 10, which is active"),
    "of an unknown kind": ({"kind": "gatehouse/policy-bundle/2"}, "its kind is 'gatehouse/policy-bundle/2'"),
    "expired": ({"expires_at": int(time.time()) - 1}, "it has expired"),
    "of another organization": ({"tenant_id": uuid4()}, "its policy is another organization's"),
    "of another organization throughout": (
        {"tenant_id": OTHERS, "policy": TenantRecords(tenant_id=OTHERS, revision=0)},
        f"it belongs to organization {OTHERS}",
    ),
    "without callers that can be read": ({"callers": {"keys": [{"id": 3}]}}, "it cannot be read"),
    "without a policy": ({"policy": None}, "it cannot be read"),
}
FORMS: dict[str, Callable[[str], str]] = {
    "truncated": truncated,
    "changed on the way": changed,
    "unsigned": unsigned,
    "nothing": lambda _: "",
    "no bundle": lambda _: "<html>a proxy's page</html>",
}


def assert_refused(outpost: OutpostServer, why: str) -> None:
    result = until(lambda: (status := policy(outpost))["fault"] and status)
    assert why in result["fault"]
    assert result["failed_at"] is not None
    assert (result["version"], result["source"]) == (10, "platform")
    assert outpost.ask("Hello").status_code == 200
    assert outpost.ask("zanzibar").status_code == 403
    results = [line for line in outpost.log.splitlines() if "outpost.bundle_failed" in line]
    assert why in json.loads(results[-1])["reason"]


@pytest.mark.parametrize("name", CONTENTS)
def test_a_bundle_with_invalid_content_is_refused(platform: FakePlatform, outpost: OutpostServer, name: str) -> None:
    fields, why = CONTENTS[name]
    platform.send(platform.bundle(outpost.id, 11, **fields))
    assert_refused(outpost, why)


@pytest.mark.parametrize("name", FORMS)
def test_a_bundle_with_an_invalid_signature_is_refused(
    platform: FakePlatform, outpost: OutpostServer, name: str
) -> None:
    signed = signing.sign(platform.bundle(outpost.id, 11), platform.signer)
    platform.send_signed(FORMS[name](signed))
    assert_refused(outpost, "its signature is not good")


def test_a_bundle_signed_by_another_key_is_refused(platform: FakePlatform, outpost: OutpostServer) -> None:
    platform.send(platform.bundle(outpost.id, 11), signer=STRANGER)
    assert_refused(outpost, "its signature is not good")


def test_another_signed_document_of_the_platform_is_refused(platform: FakePlatform, outpost: OutpostServer) -> None:
    document = platform.bundle(outpost.id, 11)
    platform.send_signed(jwt.sign_document(document, platform.signer, kind="gatehouse-archive"))
    assert_refused(outpost, "its signature is not good")


def test_after_a_refusal_a_valid_bundle_is_accepted_and_clears_the_fault(
    platform: FakePlatform, fresh: OutpostServer
) -> None:
    platform.send(platform.bundle(fresh.id, 9))
    assert_refused(fresh, "older than 10")
    platform.send(platform.bundle(fresh.id, 11, blocked="timbuktu"))
    until(lambda: policy(fresh)["version"] == 11)
    assert (policy(fresh)["fault"], policy(fresh)["failed_at"]) == (None, None)
    assert fresh.ask("zanzibar").status_code == 200
    assert fresh.ask("timbuktu").status_code == 403


def test_a_new_signing_key_is_fetched_at_once(platform: FakePlatform, fresh: OutpostServer) -> None:
    """The outpost does not wait for the next periodic fetch of the key set."""
    successor = SigningKey.generate()
    platform.more_keys.append(successor)
    platform.send(platform.bundle(fresh.id, 11), signer=successor)
    until(lambda: policy(fresh)["version"] == 11)
    assert policy(fresh)["fault"] is None


def test_a_refused_bundle_is_not_loaded_after_a_restart(platform: FakePlatform, fresh: OutpostServer) -> None:
    platform.send(platform.bundle(fresh.id, 12), signer=STRANGER)
    assert_refused(fresh, "its signature is not good")
    fresh.kill()
    fresh.environment["PLATFORM_MANAGEMENT_URL"] = "http://127.0.0.1:9"
    fresh.start()
    fresh.wait()
    policy_status = policy(fresh)
    assert (policy_status["version"], policy_status["source"]) == (10, "kept")
    assert fresh.ask("zanzibar").status_code == 403


def test_a_stored_bundle_that_was_changed_is_not_loaded(platform: FakePlatform, fresh: OutpostServer) -> None:
    fresh.kill()
    bundle_file = fresh.home / "outpost" / "bundle.jws"
    bundle_file.write_text(changed(bundle_file.read_text()))
    fresh.environment["PLATFORM_MANAGEMENT_URL"] = "http://127.0.0.1:9"
    fresh.start()
    refused = fresh.ask()
    assert (refused.status_code, refused.json()["error"]["type"]) == (503, "service_unavailable")
    assert "its signature is not good" in policy(fresh)["fault"]


async def test_the_first_bundle_is_stored_before_requests_are_served_with_it(
    platform: FakePlatform, tmp_path: Path
) -> None:
    outpost_id, stored_files = uuid4(), []
    bundles = BundleStore(outpost_id, tmp_path, lambda _: stored_files.append((tmp_path / "bundle.jws").exists()))
    bundles.trust(platform.published()["keys"])
    assert await bundles.take(signing.sign(platform.bundle(outpost_id, 10), platform.signer), "platform")
    assert stored_files == [True]


async def test_the_stored_policy_determines_the_organization_of_an_outpost(
    platform: FakePlatform, tmp_path: Path
) -> None:
    outpost_id = uuid4()

    def started() -> BundleStore:
        bundles = BundleStore(outpost_id, tmp_path)
        bundles.trust(platform.published()["keys"])
        return bundles

    def signed(version: int, **fields: Any) -> str:
        return signing.sign(platform.bundle(outpost_id, version, **fields), platform.signer)

    assert await started().take(signed(10), "platform")
    restarted = started()
    await restarted.load_kept()
    foreign_bundle = signed(11, tenant_id=OTHERS, policy=TenantRecords(tenant_id=OTHERS, revision=0))
    assert not await restarted.take(foreign_bundle, "platform")
    assert f"this outpost to {TENANT}" in (restarted.status.fault or "")
    assert await restarted.take(signed(11), "platform")


def test_the_outpost_pauses_between_polls_after_refusals(platform: FakePlatform, outpost: OutpostServer) -> None:
    platform.send(platform.bundle(outpost.id, 9))
    assert_refused(outpost, "older than 10")
    before = platform.polls
    time.sleep(2)
    assert platform.polls - before < 6
    assert httpx2.get(outpost.url + "/api/health/ready").status_code == 200
