"""Bundles that must not come into force: refused, the one before stays, and the status says why."""

import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.support.fake_platform import FakePlatform
from tests.support.outpost_server import OutpostServer

from gatehouse.foundation import jwt
from gatehouse.foundation.jwt import SigningKey
from gatehouse.policy import signing

STRANGER = SigningKey.generate()


@pytest.fixture(scope="module")
def platform() -> Iterator[FakePlatform]:
    with FakePlatform() as running:
        yield running


@pytest.fixture
def outpost(platform: FakePlatform) -> Iterator[OutpostServer]:
    """With version 10 in force, by which `zanzibar` is refused."""
    server = OutpostServer(platform)  # type: ignore[arg-type]
    platform.send(platform.bundle(server.id, 10, blocked="zanzibar"))
    with server as running:
        yield running


def policy(outpost: OutpostServer) -> dict[str, Any]:
    with outpost.admin() as operator:
        found: dict[str, Any] = operator.get("/admin/api/status").json()["policy"]
        return found


def until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def truncated(signed: str) -> str:
    return signed[: len(signed) // 2]


def changed(signed: str) -> str:
    """A bit of what it says is another one; the signature is the old one."""
    head, body, signature = signed.split(".")
    place = len(body) // 2
    return ".".join([head, body[:place] + ("A" if body[place] != "A" else "B") + body[place + 1 :], signature])


def unsigned(signed: str) -> str:
    return ".".join(["eyJhbGciOiJub25lIn0", signed.split(".")[1], ""])


#: What is sent instead, as fields of version 11, and what the status says of it.
CONTENTS: dict[str, tuple[dict[str, Any], str]] = {
    "of another outpost": ({"outpost_id": uuid4()}, "it is for outpost"),
    "of an older version": ({"version": 9}, "its version 9 is older than 10, which is in force"),
    "of an unknown kind": ({"kind": "gatehouse/policy-bundle/2"}, "its kind is 'gatehouse/policy-bundle/2'"),
    "expired": ({"expires_at": int(time.time()) - 1}, "it has expired"),
    "of another organization": ({"tenant_id": uuid4()}, "its policy is another organization's"),
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
    found = until(lambda: (said := policy(outpost))["fault"] and said)
    assert why in found["fault"]
    assert found["failed_at"] is not None
    assert (found["version"], found["source"]) == (10, "platform")
    assert outpost.ask("Hello").status_code == 200
    assert outpost.ask("zanzibar").status_code == 403
    assert "outpost.bundle_failed" in outpost.log


@pytest.mark.parametrize("name", CONTENTS)
def test_a_bundle_is_refused_for_what_it_says(platform: FakePlatform, outpost: OutpostServer, name: str) -> None:
    fields, why = CONTENTS[name]
    platform.send(platform.bundle(outpost.id, 11, **fields))
    assert_refused(outpost, why)


@pytest.mark.parametrize("name", FORMS)
def test_a_bundle_is_refused_for_its_signature(platform: FakePlatform, outpost: OutpostServer, name: str) -> None:
    signed = signing.sign(platform.bundle(outpost.id, 11), platform.signer)
    platform.send_signed(FORMS[name](signed))
    assert_refused(outpost, "its signature is not good")


def test_a_key_that_is_not_the_platform_s_signs_nothing(platform: FakePlatform, outpost: OutpostServer) -> None:
    platform.send(platform.bundle(outpost.id, 11), signer=STRANGER)
    assert_refused(outpost, "its signature is not good")


def test_another_document_of_the_platform_is_no_bundle(platform: FakePlatform, outpost: OutpostServer) -> None:
    document = platform.bundle(outpost.id, 11)
    platform.send_signed(jwt.sign_document(document, platform.signer, kind="gatehouse-archive"))
    assert_refused(outpost, "its signature is not good")


def test_after_a_refusal_a_good_one_is_taken_and_the_fault_is_gone(
    platform: FakePlatform, outpost: OutpostServer
) -> None:
    platform.send(platform.bundle(outpost.id, 9))
    assert_refused(outpost, "older than 10")
    platform.send(platform.bundle(outpost.id, 11, blocked="timbuktu"))
    until(lambda: policy(outpost)["version"] == 11)
    assert (policy(outpost)["fault"], policy(outpost)["failed_at"]) == (None, None)
    assert outpost.ask("zanzibar").status_code == 200
    assert outpost.ask("timbuktu").status_code == 403


def test_a_key_that_the_platform_has_taken_up_is_asked_for(platform: FakePlatform, outpost: OutpostServer) -> None:
    """Without waiting for the next look at the key set."""
    successor = SigningKey.generate()
    platform.more_keys.append(successor)
    platform.send(platform.bundle(outpost.id, 11), signer=successor)
    until(lambda: policy(outpost)["version"] == 11)
    assert policy(outpost)["fault"] is None


def test_a_refused_bundle_is_not_what_a_restart_begins_with(platform: FakePlatform, outpost: OutpostServer) -> None:
    platform.send(platform.bundle(outpost.id, 12), signer=STRANGER)
    assert_refused(outpost, "its signature is not good")
    until((outpost.home / "outpost" / "bundle.jws").exists)
    outpost.kill()
    outpost.environment["PLATFORM_MANAGEMENT_URL"] = "http://127.0.0.1:9"
    outpost.start()
    outpost.wait()
    found = policy(outpost)
    assert (found["version"], found["source"]) == (10, "kept")
    assert outpost.ask("zanzibar").status_code == 403


def test_a_kept_bundle_that_was_tampered_with_is_not_begun_with(platform: FakePlatform, outpost: OutpostServer) -> None:
    kept = outpost.home / "outpost" / "bundle.jws"
    until(kept.exists)
    outpost.kill()
    kept.write_text(changed(kept.read_text()))
    outpost.environment["PLATFORM_MANAGEMENT_URL"] = "http://127.0.0.1:9"
    outpost.start()
    refused = outpost.ask()
    assert (refused.status_code, refused.json()["error"]["type"]) == (503, "service_unavailable")
    assert "its signature is not good" in policy(outpost)["fault"]


def test_refusals_do_not_make_it_ask_without_a_pause(platform: FakePlatform, outpost: OutpostServer) -> None:
    platform.send(platform.bundle(outpost.id, 9))
    assert_refused(outpost, "older than 10")
    before = platform.polls
    time.sleep(2)
    assert platform.polls - before < 6
    assert httpx2.get(outpost.url + "/api/health/ready").status_code == 200
