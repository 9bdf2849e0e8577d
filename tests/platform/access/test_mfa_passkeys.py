"""Passkeys (WebAuthn): enrolment, list, copies and removal, and responses that must be refused."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs
from tests.support.authenticator import Authenticator, b64, unb64
from tests.support.members import Member, member, sign_in, use, verify
from tests.support.platform import RunningPlatform, Tenant

WEBAUTHN = "/api/auth/mfa/webauthn"
LOCALHOST = {"Host": "localhost"}


@pytest.fixture
async def ada(platform: RunningPlatform, tenant: Tenant) -> Member:
    return await member(platform, tenant)


async def begin(who: Member) -> dict[str, Any]:
    answer = await who.client.post(f"{WEBAUTHN}/register/begin", json={}, headers=LOCALHOST)
    assert answer.status_code == 200, answer.text
    options: dict[str, Any] = answer.json()["public_key"]
    return options


async def test_an_unexpected_error_of_a_parser_is_logged_and_the_passkey_refused(ada: Member) -> None:
    await begin(ada)
    with capture_logs() as logs:
        unexpected = await finish(ada, {"response": {"clientDataJSON": 5}})
        wrong = await finish(ada, {"response": {"clientDataJSON": b64(b"no JSON")}})
    assert (unexpected.status_code, wrong.status_code) == (400, 400)
    warnings = [(log["purpose"], log["log_level"]) for log in logs if log["event"] == "mfa.passkey_not_judged"]
    assert warnings == [("register", "warning")]


async def finish(who: Member, credential: dict[str, Any], name: str = "a key") -> httpx2.Response:
    return await who.client.post(
        f"{WEBAUTHN}/register/finish", json={"name": name, "credential": credential}, headers=LOCALHOST
    )


async def enrol(platform: RunningPlatform, who: Member, **created: Any) -> Authenticator:
    """Enrol a passkey, which steps up the member's session."""
    key = Authenticator(**created)
    answer = await finish(who, key.create(await begin(who)))
    assert answer.status_code == 200, answer.text
    await use(platform, who, answer.json()["tokens"])
    return key


async def begin_assertion(platform: RunningPlatform, who: Member) -> tuple[str, dict[str, Any]]:
    """Return a pending login and the options for its passkeys."""
    token = (await sign_in(who)).json()["mfa_token"]
    answer = await platform.anonymous.post(f"{WEBAUTHN}/assert/begin", json={"mfa_token": token}, headers=LOCALHOST)
    assert answer.status_code == 200, answer.text
    return token, answer.json()["public_key"]


async def test_a_passkey_signs_in(platform: RunningPlatform, tenant: Tenant, ada: Member) -> None:
    key = Authenticator()
    options = await begin(ada)
    assert (options["rp"]["id"], unb64(options["user"]["id"])) == ("localhost", ada.id.bytes)
    answer = await finish(ada, key.create(options), "Ada's key")
    assert answer.status_code == 200, answer.text
    assert len(answer.json()["recovery_codes"]) == 10
    assert (await sign_in(ada)).json()["methods"] == ["webauthn", "recovery"]
    token, options = await begin_assertion(platform, ada)
    assert options["allowCredentials"] == [{"id": b64(key.credential_id), "type": "public-key", "transports": ["usb"]}]
    shown = await verify(platform, token, "webauthn", credential=key.get(options))
    assert shown.status_code == 200, shown.text
    client = platform.client(shown.json()["access_token"])
    assert (await client.get("/api/auth/sessions")).json()[0]["amr"] == ["pwd", "hwk", "mfa"]
    (passkey,) = (await client.get("/api/auth/mfa")).json()["passkeys"]
    assert (passkey["name"], passkey["synced"], passkey["last_used_at"] is None) == ("Ada's key", False, False)
    (event,) = await platform.audit(tenant, "mfa.enrolled")
    assert event["details"] == {"method": "webauthn"}


async def test_finishing_an_assertion_signs_in(platform: RunningPlatform, ada: Member) -> None:
    key = await enrol(platform, ada, synced=True)
    token, options = await begin_assertion(platform, ada)
    body = {"mfa_token": token, "credential": key.get(options)}
    answer = await platform.anonymous.post(f"{WEBAUTHN}/assert/finish", json=body, headers=LOCALHOST)
    assert answer.status_code == 200
    sessions = (await platform.client(answer.json()["access_token"]).get("/api/auth/sessions")).json()
    assert sessions[0]["amr"] == ["pwd", "swk", "mfa"]


async def test_a_passkey_steps_a_session_up(platform: RunningPlatform, ada: Member) -> None:
    plain = ada.client
    key = await enrol(platform, ada)
    options = (await plain.post(f"{WEBAUTHN}/assert/begin", json={}, headers=LOCALHOST)).json()["public_key"]
    assert (await plain.post("/api/auth/api-keys", json={"description": "x"})).status_code == 403
    body = {"method": "webauthn", "credential": key.get(options)}
    stepped = await plain.post("/api/auth/mfa/verify", json=body, headers=LOCALHOST)
    client = platform.client(stepped.json()["access_token"])
    assert (await client.post("/api/auth/api-keys", json={"description": "x"})).status_code == 201


async def test_a_challenge_is_valid_once(platform: RunningPlatform, ada: Member) -> None:
    key = await enrol(platform, ada)
    token, options = await begin_assertion(platform, ada)
    shown = key.get(options)
    assert (await verify(platform, token, "webauthn", credential=shown)).status_code == 200
    token, _ = await begin_assertion(platform, ada)
    assert (await verify(platform, token, "webauthn", credential=shown)).status_code == 401


async def test_one_of_several_parallel_uses_of_a_response_succeeds(platform: RunningPlatform, ada: Member) -> None:
    key = await enrol(platform, ada)
    token, options = await begin_assertion(platform, ada)
    tokens = [token, *[(await sign_in(ada)).json()["mfa_token"] for _ in range(3)]]
    shown = key.get(options)
    answers = await asyncio.gather(*(verify(platform, token, "webauthn", credential=shown) for token in tokens))
    assert sorted(answer.status_code for answer in answers) == [200, 401, 401, 401]


async def test_a_wrong_response_uses_up_the_challenge(platform: RunningPlatform, ada: Member) -> None:
    key = await enrol(platform, ada)
    token, options = await begin_assertion(platform, ada)
    forged = Authenticator(credential_id=key.credential_id)
    assert (await verify(platform, token, "webauthn", credential=forged.get(options))).status_code == 401
    assert (await verify(platform, token, "webauthn", credential=key.get(options))).status_code == 401


async def test_a_challenge_expires(platform: RunningPlatform, ada: Member) -> None:
    key = await enrol(platform, ada)
    token, options = await begin_assertion(platform, ada)
    platform.sql("UPDATE mfa_challenges SET expires_at = now() WHERE user_id = %s", [ada.id])
    assert (await verify(platform, token, "webauthn", credential=key.get(options))).status_code == 401


async def test_a_sign_count_that_does_not_grow_is_refused(platform: RunningPlatform, ada: Member) -> None:
    key = await enrol(platform, ada)
    for signs, status in ((5, 200), (4, 401), (5, 401), (6, 200)):
        token, options = await begin_assertion(platform, ada)
        key.signs = signs - 1
        answer = await verify(platform, token, "webauthn", credential=key.get(options))
        assert answer.status_code == status, signs


async def test_another_users_passkey_is_refused(platform: RunningPlatform, tenant: Tenant, ada: Member) -> None:
    bob = await member(platform, tenant)
    await enrol(platform, ada)
    theirs = await enrol(platform, bob)
    token, options = await begin_assertion(platform, ada)
    assert (await verify(platform, token, "webauthn", credential=theirs.get(options))).status_code == 401
    # A response to another user's challenge is refused too.
    _, their_options = await begin_assertion(platform, bob)
    token, _ = await begin_assertion(platform, ada)
    assert (await verify(platform, token, "webauthn", credential=theirs.get(their_options))).status_code == 401


Forge = Callable[[Authenticator, dict[str, Any]], dict[str, Any]]


def _other_origin(key: Authenticator, options: dict[str, Any]) -> dict[str, Any]:
    key.origin = "http://localhost.evil.test"
    return key.get(options)


def _other_site(key: Authenticator, options: dict[str, Any]) -> dict[str, Any]:
    return key.get({**options, "rpId": "evil.test"})


def _other_kind(key: Authenticator, options: dict[str, Any]) -> dict[str, Any]:
    shown = key.get(options)
    data = json.loads(unb64(shown["response"]["clientDataJSON"])) | {"type": "webauthn.create"}
    shown["response"]["clientDataJSON"] = b64(json.dumps(data).encode())
    return shown


def _unsigned(key: Authenticator, options: dict[str, Any]) -> dict[str, Any]:
    shown = key.get(options)
    shown["response"]["signature"] = b64(b"\x30\x00")
    return shown


def _changed(**fields: Any) -> Forge:
    return lambda key, options: key.get(options) | fields


def _response(**fields: Any) -> Forge:
    def forge(key: Authenticator, options: dict[str, Any]) -> dict[str, Any]:
        shown = key.get(options)
        return shown | {"response": shown["response"] | fields}

    return forge


@pytest.mark.parametrize(
    "forge",
    [
        _other_origin, _other_site, _other_kind, _unsigned,
        _changed(id="AAAA", rawId="AAAA"), _changed(id=7), _changed(response=None), _changed(response=[]),
        _changed(type="password"), _changed(rawId=None),
        _response(authenticatorData="AA"), _response(authenticatorData=7), _response(signature=None),
        _response(clientDataJSON="!"), _response(clientDataJSON=b64(b"[]")), _response(clientDataJSON=b64(b"\xff")),
    ],
)  # fmt: skip
async def test_a_forged_response_is_refused(platform: RunningPlatform, ada: Member, forge: Forge) -> None:
    key = await enrol(platform, ada)
    token, options = await begin_assertion(platform, ada)
    answer = await verify(platform, token, "webauthn", credential=forge(key, options))
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_code"), answer.text


@pytest.mark.parametrize("shown", [{}, {"response": {}}, {"id": "x"}, {"response": {"attestationObject": "AA"}}])
async def test_a_malformed_registration_is_refused(ada: Member, shown: dict[str, Any]) -> None:
    answer = await finish(ada, shown)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_credential")


async def test_a_registration_of_another_origin_is_refused(platform: RunningPlatform, ada: Member) -> None:
    for origin in ("https://evil.test", "https://localhost", "http://localhost:8001"):
        answer = await finish(ada, Authenticator(origin=origin).create(await begin(ada)))
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_credential"), origin
    assert (await sign_in(ada)).status_code == 200


async def test_a_challenge_for_a_registration_is_refused_in_an_assertion(
    platform: RunningPlatform, ada: Member
) -> None:
    key = await enrol(platform, ada)
    options = await begin(ada)
    token, _ = await begin_assertion(platform, ada)
    crossed = key.get({"challenge": options["challenge"], "rpId": "localhost"})
    assert (await verify(platform, token, "webauthn", credential=crossed)).status_code == 401


async def test_a_broken_attestation_is_refused(ada: Member) -> None:
    for broken in ("", "AA", b64(b"\xff" * 64), b64(b"\x9f" * 2000), 7, None):
        shown = Authenticator().create(await begin(ada))
        shown["response"]["attestationObject"] = broken
        assert (await finish(ada, shown)).status_code == 400, broken


async def test_several_passkeys_have_names(platform: RunningPlatform, ada: Member) -> None:
    first = await enrol(platform, ada)
    options = await begin(ada)
    # The options exclude a key that is enrolled already.
    assert [excluded["id"] for excluded in options["excludeCredentials"]] == [b64(first.credential_id)]
    second = Authenticator()
    answer = await finish(ada, second.create(options), "another")
    assert answer.json()["recovery_codes"] is None
    listed = (await ada.client.get("/api/auth/mfa")).json()["passkeys"]
    assert [item["name"] for item in listed] == ["a key", "another"]
    renamed = await ada.client.patch(f"{WEBAUTHN}/{listed[1]['id']}", json={"name": "the blue one"})
    assert (renamed.status_code, renamed.json()["name"]) == (200, "the blue one")
    for key in (first, second):
        token, options = await begin_assertion(platform, ada)
        assert (await verify(platform, token, "webauthn", credential=key.get(options))).status_code == 200


async def test_a_passkey_is_enrolled_once(platform: RunningPlatform, tenant: Tenant, ada: Member) -> None:
    key = await enrol(platform, ada)
    bob = await member(platform, tenant)
    for who in (ada, bob):
        answer = await finish(who, key.create(await begin(who)))
        assert (answer.status_code, answer.json()["error"]) == (409, "already_enrolled")


async def test_a_user_has_at_most_twenty_passkeys(platform: RunningPlatform, ada: Member) -> None:
    await enrol(platform, ada)
    platform.sql(
        "INSERT INTO mfa_passkeys (id, tenant_id, user_id, credential_id, public_key, sign_count, name, synced)"
        " SELECT gen_random_uuid(), tenant_id, user_id, credential_id || n::text::bytea, public_key, 0, name, synced"
        " FROM mfa_passkeys, generate_series(1, 19) n WHERE user_id = %s",
        [ada.id],
    )
    answer = await ada.client.post(f"{WEBAUTHN}/register/begin", json={}, headers=LOCALHOST)
    assert (answer.status_code, answer.json()["error"]) == (409, "too_many_passkeys")


async def test_registrations_that_began_together_stay_within_the_limit(
    platform: RunningPlatform, ada: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatehouse.platform.access.mfa.enrolment._MAX_PASSKEYS", 2)
    await enrol(platform, ada)
    all_options = [await begin(ada) for _ in range(4)]
    answers = await asyncio.gather(*(finish(ada, Authenticator().create(options)) for options in all_options))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    count = "SELECT count(*) FROM mfa_passkeys WHERE user_id = %s"
    assert platform.sql(count, [ada.id]) == [(2,)]


async def test_a_removed_passkey_is_refused(platform: RunningPlatform, tenant: Tenant, ada: Member) -> None:
    first, second = await enrol(platform, ada), await enrol(platform, ada)
    listed = (await ada.client.get("/api/auth/mfa")).json()["passkeys"]
    assert (await ada.client.delete(f"{WEBAUTHN}/{listed[0]['id']}")).status_code == 204
    token, options = await begin_assertion(platform, ada)
    assert (await verify(platform, token, "webauthn", credential=first.get(options))).status_code == 401
    token, options = await begin_assertion(platform, ada)
    assert (await verify(platform, token, "webauthn", credential=second.get(options))).status_code == 200
    assert len(await platform.audit(tenant, "mfa.removed")) == 1


async def test_another_users_passkey_is_not_found(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, ada: Member
) -> None:
    await enrol(platform, ada)
    ((passkey_id,),) = platform.sql("SELECT id FROM mfa_passkeys WHERE user_id = %s", [ada.id])
    for person in (tenant.user, tenant.admin, other_tenant.admin):
        for method, body in (("PATCH", {"name": "mine"}), ("DELETE", None)):
            answer = await person.client.request(method, f"{WEBAUTHN}/{passkey_id}", json=body)
            assert (answer.status_code, answer.json()) == (404, {"detail": "Passkey not found"})


async def test_an_invalid_name_is_refused(platform: RunningPlatform, ada: Member) -> None:
    await enrol(platform, ada)
    ((passkey_id,),) = platform.sql("SELECT id FROM mfa_passkeys WHERE user_id = %s", [ada.id])
    for name in ("", "  ", "x" * 101, 7):
        answer = await ada.client.patch(f"{WEBAUTHN}/{passkey_id}", json={"name": name})
        assert (answer.status_code, answer.json()["detail"][0]["loc"][-1]) == (422, "name")


async def test_passkeys_need_the_public_url(ada: Member) -> None:
    """The platform of the tests has no public address, so only browsers on this machine work."""
    for host in ("gatehouse.test", "localhost.evil.test", "127.0.0.1:8000"):
        answer = await ada.client.post(f"{WEBAUTHN}/register/begin", json={}, headers={"Host": host})
        assert (answer.status_code, answer.json()["error"]) == (409, "passkeys_unavailable")


@pytest.mark.parametrize(
    ("public_url", "shown"),
    [
        ("https://ai.example.com:8443/", "https://ai.example.com:8443"),
        # Browsers send an origin in lower case and without a standard port.
        ("https://AI.Example.com", "https://ai.example.com"),
        ("https://ai.example.com:443", "https://ai.example.com"),
    ],
)
async def test_the_public_url_is_the_relying_party_of_passkeys(
    platform: RunningPlatform, ada: Member, monkeypatch: pytest.MonkeyPatch, public_url: str, shown: str
) -> None:
    public = platform.host.settings.model_copy(update={"public_url": public_url})
    monkeypatch.setattr(platform.host, "settings", public)
    options = await begin(ada)
    assert options["rp"]["id"] == "ai.example.com"
    key = Authenticator(origin=shown)
    assert (await finish(ada, key.create(options))).status_code == 200
