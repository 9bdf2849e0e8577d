"""Invalid tokens are refused with 401 over HTTP, by the gateway and by administration (docs/authentication.md; RFC
8725)."""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.support.forged import by_hmac, by_rsa, decoded, encoded, unsigned
from tests.support.members import enrol, member, sign_in
from tests.support.operations import SCIM, filled
from tests.support.platform import PASSWORD, RunningPlatform, Tenant

from gatehouse.foundation.jwt import SigningKey

#: A token of an administrator is valid for all of these surfaces.
SURFACES = [
    ("GET", "/v1/models"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/messages"),
    ("POST", "/v1/responses"),
    ("GET", "/api/admin/users"),
    ("POST", "/api/auth/api-keys"),
    ("GET", "/api/auth/sessions"),
    *[(method, filled(path)) for method, path in SCIM[:1]],
]

STRANGER = SigningKey.generate()
Claims = dict[str, Any]
Forge = Callable[["Ground"], str]


class Ground:
    """The material for forged tokens: everything that an attacker may know, and `sign`, which needs the private key."""

    def __init__(self, platform: RunningPlatform, tenant: Tenant, jku: str) -> None:
        platform.signed({})
        assert platform._key is not None
        self._key = platform._key
        self.public = SigningKey(self._key.kid, self._key.key)
        self.jku = jku
        self.header = {"alg": "RS256", "typ": "JWT", "kid": self._key.kid}
        now = int(time.time())
        self.claims: Claims = {
            "iss": platform.host.issuer,
            "aud": platform.host.issuer,
            "iat": now,
            "exp": now + 600,
            "sub": str(tenant.admin.id),
            "tid": str(tenant.id),
            "sid": str(tenant.admin.session_id),
        }

    def sign(self, *, header: Any = None, **claims: Any) -> str:
        """Return a token that is signed like the platform's. Claims that are None are omitted."""
        changed = {name: value for name, value in {**self.claims, **claims}.items() if value is not None}
        return by_rsa({**self.header, **(header or {})}, changed, self._key)

    def sign_text(self, claims: str) -> str:
        return by_rsa(self.header, claims, self._key)

    def with_header(self, **header: Any) -> str:
        """Return a token with a stranger's signature and a header that refers to the stranger's key."""
        return by_rsa({**self.header, **header}, self.claims, STRANGER)

    def now(self, seconds: float) -> int:
        return int(time.time() + seconds)

    def session_as_m2m(self) -> str:
        head, _, signature = self.sign().split(".")
        return f"{head}.{encoded({**self.claims, 'token_type': 'm2m', 'scope': 'admin:write'})}.{signature}"

    def m2m_as_session(self) -> str:
        head, _, signature = self.sign(sid=None, token_type="m2m", scope="admin:write").split(".")
        return f"{head}.{encoded(self.claims)}.{signature}"


def twice(ground: Ground, name: str, first: Any) -> str:
    """Return JSON in which this claim occurs twice. The second value is the valid one."""
    valid_claims = json.dumps(ground.claims)
    return "{" + f"{json.dumps(name)}: {json.dumps(first)}, " + valid_claims[1:]


FORGED: dict[str, Forge] = {
    # algorithms
    **{f"alg {alg!r}": lambda g, alg=alg: unsigned({**g.header, "alg": alg}, g.claims)
       for alg in ("none", "None", "NONE", "nOnE", "", None, 0, [], ["RS256"])},
    "alg none without a key id": lambda g: unsigned({"alg": "none"}, g.claims),
    "alg none with the good signature": lambda g: (
        f"{encoded({**g.header, 'alg': 'none'})}.{'.'.join(g.sign().split('.')[1:])}"
    ),
    "no signature": lambda g: g.sign().rsplit(".", 1)[0] + ".",
    "two parts": lambda g: g.sign().rsplit(".", 1)[0],
    "an empty signature under RS256": lambda g: unsigned(g.header, g.claims),
    "zeros as a signature": lambda g: unsigned(g.header, g.claims, bytes(256)),
    "HS256 with the public key in PEM": lambda g: by_hmac(
        {**g.header, "alg": "HS256"}, g.claims, g.public.public_pem()
    ),
    "HS256 with the public key in PEM, trimmed": lambda g: by_hmac(
        {**g.header, "alg": "HS256"}, g.claims, g.public.public_pem().strip()
    ),
    "HS256 with the public key in DER": lambda g: by_hmac(
        {**g.header, "alg": "HS256"}, g.claims,
        base64.b64decode(b"".join(g.public.public_pem().strip().split(b"\n")[1:-1])),
    ),
    "HS256 with the published JWK": lambda g: by_hmac(
        {**g.header, "alg": "HS256"}, g.claims, json.dumps(g.public.published()).encode()
    ),
    "HS256 with the published modulus": lambda g: by_hmac(
        {**g.header, "alg": "HS256"}, g.claims, g.public.published()["n"].encode()
    ),
    "HS256 with nothing": lambda g: by_hmac({**g.header, "alg": "HS256"}, g.claims, b""),
    **{f"signed as RS256, called {alg}": lambda g, alg=alg: g.sign(header={"alg": alg})
       for alg in ("RS384", "PS256", "HS256", "ES256", "none", "rs256")},
    # keys
    "a stranger's key under our id": lambda g: g.with_header(),
    "a stranger's key under its own id": lambda g: g.with_header(kid=STRANGER.kid),
    "no key id": lambda g: by_rsa({"alg": "RS256"}, g.claims, STRANGER),
    **{f"key id {kid!r}": lambda g, kid=kid: g.with_header(kid=kid) for kid in (
        "", "../../../../dev/null", "/etc/passwd", "file:///dev/null", "' OR '1'='1", "x' UNION SELECT 'AA==' --",
        "%00", "\u0000", "a" * 4000, None, 0, True, [], {}, ["x"], {"$ne": ""})},
    "an empty file as the key": lambda g: by_hmac({**g.header, "alg": "HS256", "kid": "/dev/null"}, g.claims, b""),
    "jwk": lambda g: g.with_header(jwk=STRANGER.published()),
    "jwk with its own id": lambda g: g.with_header(jwk=STRANGER.published(), kid=STRANGER.kid),
    "jku": lambda g: g.with_header(jku=g.jku, kid=STRANGER.kid),
    "jku under our id": lambda g: g.with_header(jku=g.jku),
    "x5u": lambda g: g.with_header(x5u=g.jku, kid=STRANGER.kid),
    "x5u under our id": lambda g: g.with_header(x5u=g.jku),
    "x5c": lambda g: g.with_header(x5c=[encoded(STRANGER.public_pem())]),
    "crit": lambda g: g.sign(header={"crit": ["exp"]}),
    "b64 false": lambda g: g.sign(header={"crit": ["b64"], "b64": False}),
    # types
    "a session's, changed into a machine's": lambda g: g.session_as_m2m(),
    "a machine's, changed into a session's": lambda g: g.m2m_as_session(),
    **{f"signed for something else: {kind!r}": lambda g, kind=kind: g.sign(token_type=kind)
       for kind in ("refresh", "id", "id_token", "mfa", "scim", "session", "M2M", "", 0, [], {})},
    "an id_token": lambda g: g.sign(aud=str(uuid4()), nonce="n", auth_time=g.now(0)),
    "a session's, of no session": lambda g: g.sign(sid=None),
    "a session's, of a session that is no id": lambda g: g.sign(sid="x"),
    "of a machine that is nobody's": lambda g: g.sign(sub="x", sid=None, token_type="m2m", scope="admin:read"),
    # times
    "expired": lambda g: g.sign(iat=g.now(-900), exp=g.now(-60)),
    "expired a moment ago": lambda g: g.sign(iat=g.now(-900), exp=g.now(-1)),
    "expired, of a clock that runs behind by more than is forgiven": lambda g: g.sign(iat=g.now(-900), exp=g.now(-6)),
    "not yet valid": lambda g: g.sign(nbf=g.now(600)),
    "not yet valid by more than is forgiven": lambda g: g.sign(nbf=g.now(30)),
    "issued in the future": lambda g: g.sign(iat=g.now(600)),
    "issued in the future by more than is forgiven": lambda g: g.sign(iat=g.now(30)),
    **{f"{name} {value!r}": lambda g, name=name, value=value: g.sign(**{name: value})
       for name in ("exp", "iat") for value in ("tomorrow", True, [], {}, "9999999999")},
    "no expiry": lambda g: g.sign(exp=None),
    "no time of issue": lambda g: g.sign(iat=None),
    # audience, issuer
    **{f"{name} {value!r}": lambda g, name=name, value=value: g.sign(**{name: value})
       for name in ("iss", "aud") for value in ("elsewhere", "", [], ["elsewhere"], {"gatehouse": 1}, 0)},
    "no issuer": lambda g: g.sign(iss=None),
    "no audience": lambda g: g.sign(aud=None),
    **{f"subject {sub!r}": lambda g, sub=sub: g.sign(sub=sub)
       for sub in ("", "admin", "' OR 1=1 --", "\u0000", 0, True, [], {}, str(uuid4()))},
    "no subject": lambda g: g.sign(sub=None),
    # claims that occur twice
    **{f"{name} twice": lambda g, name=name, first=first: g.sign_text(twice(g, name, first))
       for name, first in (("sub", str(uuid4())), ("exp", 1), ("aud", "elsewhere"), ("token_type", "m2m"), ("sid", "x"))
       if name != "token_type"},
    "token_type twice": lambda g: g.sign_text(
        json.dumps({**g.claims, "token_type": "m2m"})[:-1] + ', "token_type": "m2m"}'
    ),
    # form
    "claims that are a list": lambda g: g.sign_text("[]"),
    "claims that are no JSON": lambda g: g.sign_text("{"),
    "claims that are nested deeply": lambda g: g.sign_text("[" * 2500 + "]" * 2500),
    "claims with a number that is none": lambda g: g.sign_text(json.dumps({**g.claims, "exp": float("inf")})),
    "claims with NaN": lambda g: g.sign_text(json.dumps({**g.claims, "exp": float("nan")})),
    "five parts": lambda g: g.sign() + ".x.y",
    "its JSON form": lambda g: json.dumps(
        dict(zip(("protected", "payload", "signature"), g.sign().split("."), strict=True))
    ),
    "the good one, and a letter": lambda g: g.sign() + "A",
    "the good one, twice": lambda g: f"{g.sign()}, {g.sign()}",
    "more than 8 KiB": lambda g: g.sign(pad="x" * 8192),
    "60 KB": lambda g: g.sign(pad="x" * 45_000),
}  # fmt: skip


@pytest.fixture(scope="module")
async def http(platform: RunningPlatform) -> AsyncIterator[httpx2.AsyncClient]:
    async with platform.listening() as url, httpx2.AsyncClient(base_url=url, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
async def key_server() -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server with a stranger's key set. Yields its URL and the received requests."""
    requests: list[bytes] = []
    body = json.dumps({"keys": [STRANGER.published()]}).encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.read(1000))
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/keys.json", requests


@pytest.fixture(scope="module")
async def ground(platform: RunningPlatform, somebody: Tenant, key_server: tuple[str, list[bytes]]) -> Ground:
    return Ground(platform, somebody, key_server[0])


async def refused_everywhere(http: httpx2.AsyncClient, credential: str) -> None:
    for header in ({"Authorization": f"Bearer {credential}"}, {"X-API-Key": credential}):
        for method, path in SURFACES:
            answer = await http.request(method, path, headers=header)
            assert answer.status_code == 401, (method, path, answer.status_code, answer.text)
            assert credential not in answer.text


async def test_the_unchanged_token_is_valid(http: httpx2.AsyncClient, ground: Ground) -> None:
    for method, path in SURFACES:
        if not path.startswith("/api/scim"):
            answer = await http.request(method, path, headers={"Authorization": f"Bearer {ground.sign()}"})
            assert answer.status_code not in {401, 403}, (method, path, answer.text)


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
async def test_a_forged_token_is_refused_everywhere(http: httpx2.AsyncClient, ground: Ground, forge: Forge) -> None:
    await refused_everywhere(http, forge(ground))


async def test_no_address_named_in_a_token_is_fetched(
    http: httpx2.AsyncClient, ground: Ground, key_server: tuple[str, list[bytes]]
) -> None:
    for name in ("jku", "jku under our id", "x5u", "x5u under our id"):
        await refused_everywhere(http, FORGED[name](ground))
    assert key_server[1] == []
    # The server works, so a request would have been recorded.
    async with httpx2.AsyncClient() as client:
        assert (await client.get(key_server[0])).json()["keys"][0]["kid"] == STRANGER.kid


@pytest.mark.parametrize("claim", ["iat", "nbf"])
async def test_small_differences_of_clocks_are_accepted(http: httpx2.AsyncClient, ground: Ground, claim: str) -> None:
    token = ground.sign(**{claim: ground.now(3)})
    answer = await http.get("/api/admin/users", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200, answer.text


async def test_an_expired_token_is_refused_although_it_is_cached(http: httpx2.AsyncClient, ground: Ground) -> None:
    token = ground.sign(exp=ground.now(2))
    header = {"Authorization": f"Bearer {token}"}
    assert (await http.get("/v1/models", headers=header)).status_code == 200
    until = decoded(token.split(".")[1])["exp"]
    await asyncio.sleep(max(0, until - time.time()) + 0.05)
    await refused_everywhere(http, token)


async def test_secrets_of_other_kinds_are_refused_as_credentials(
    platform: RunningPlatform, http: httpx2.AsyncClient, somebody: Tenant
) -> None:
    admin = somebody.admin.client
    email = f"ada-{uuid4().hex}@example.test"
    created_user = (await admin.post("/api/admin/users", json={"email": email, "password": PASSWORD})).json()
    signed_in = (await http.post("/api/auth/login", json={"email": email, "password": PASSWORD})).json()
    invited = (await admin.post("/api/admin/users", json={"email": f"x{email}"})).json()
    machine = (await admin.post("/api/admin/oauth-clients/", json={"name": "a machine"})).json()
    reset = (await admin.post(f"/api/admin/users/{created_user['id']}/password-reset")).json()
    guarded = await member(platform, somebody)
    app, recovery_codes = await enrol(platform, guarded)
    half_way = (await sign_in(guarded)).json()
    secrets = {
        "the token of a sign-in that lacks its second factor": half_way["mfa_token"],
        "an authenticator's secret": app,
        "a recovery code": recovery_codes[0],
        "a refresh token": signed_in["refresh_token"],
        "an invitation": invited["invitation_token"],
        "a reset token": reset["token"],
        "a client's secret": machine["client_secret"],
        "a client's id": machine["client_id"],
        "a password": PASSWORD,
        "a session's id": str(somebody.admin.session_id),
        "a key's beginning": (await platform.new_key(somebody.admin))[:8],
    }
    for credential in secrets.values():
        await refused_everywhere(http, credential)


async def test_a_scim_token_is_refused_outside_provisioning(http: httpx2.AsyncClient, somebody: Tenant) -> None:
    scim_token = await somebody.admin.client.post("/api/admin/scim/token", json={"description": "a directory"})
    token = scim_token.json()["token"]
    assert (await http.get("/api/scim/v2/Users", headers={"Authorization": f"Bearer {token}"})).status_code == 200
    for method, path in SURFACES:
        if not path.startswith("/api/scim"):
            answer = await http.request(method, path, headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == 401, (method, path, answer.text)


async def test_a_path_similar_to_provisioning_refuses_scim_tokens(http: httpx2.AsyncClient, somebody: Tenant) -> None:
    made = await somebody.admin.client.post("/api/admin/scim/token", json={"description": "a directory"})
    header = {"Authorization": f"Bearer {made.json()['token']}"}
    for path in (
        "/api/scim/v2/../../admin/users", "/api/scim/v2/..%2f..%2fadmin/users", "/api/scim/v2x", "//api/scim/v2/Users",
        "/api/scim/v2/%2e%2e/%2e%2e/admin/users", "/api/scim/v2;/../admin/users", "/api/scim/v20/Users",
    ):  # fmt: skip
        answer = await http.get(path, headers=header)
        assert answer.status_code in {401, 404}, (path, answer.text)
        assert somebody.admin.email not in answer.text
