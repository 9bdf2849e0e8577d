"""Users with a password and an authenticator app, who sign in like people."""

from dataclasses import dataclass
from time import time
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pyotp
from tests.support.platform import PASSWORD, RunningPlatform, Tenant

from gatehouse.foundation.ids import new_id
from gatehouse.foundation.secrets.passwords import hash_now

#: One hash for all users, because hashing is slow.
HASH = hash_now(PASSWORD)


@dataclass
class Member:
    """A user. `client` uses the access token of the latest session."""

    id: UUID
    email: str
    anonymous: httpx2.AsyncClient
    client: httpx2.AsyncClient
    session_id: str = ""
    refresh_token: str | None = None


async def member(platform: RunningPlatform, tenant: Tenant, *, role: str = "user", signed_in: bool = True) -> Member:
    """Create a user of the tenant. The user is signed in, unless the tenant requires a second factor."""
    user_id, email = new_id(), f"ada-{uuid4().hex[:10]}@example.test"
    platform.sql(
        "INSERT INTO users (id, tenant_id, email, role, password_hash) VALUES (%s, %s, %s, %s, %s)",
        [user_id, tenant.id, email, role, HASH],
    )
    platform.touch("user", user_id)
    await platform.refresh()
    new_member = Member(user_id, email, platform.anonymous, platform.anonymous)
    if signed_in:
        await use(platform, new_member, (await sign_in(new_member)).json())
    return new_member


async def use(platform: RunningPlatform, who: Member, tokens: dict[str, Any]) -> None:
    """Use these tokens from now on."""
    who.client = platform.client(tokens["access_token"])
    who.refresh_token = tokens["refresh_token"] or who.refresh_token
    (current,) = [item for item in (await who.client.get("/api/auth/sessions")).json() if item["current"]]
    who.session_id = current["id"]


async def sign_in(who: Member) -> httpx2.Response:
    return await who.anonymous.post("/api/auth/login", json={"email": who.email, "password": PASSWORD})


async def verify(platform: RunningPlatform, mfa_token: str, method: str, **proof: Any) -> httpx2.Response:
    body = {"mfa_token": mfa_token, "method": method, **proof}
    return await platform.anonymous.post("/api/auth/mfa/verify", json=body, headers={"Host": "localhost"})


async def enrol(platform: RunningPlatform, who: Member, *, stepped_up: bool = True) -> tuple[str, list[str]]:
    """Enrol an authenticator app and return its secret and the recovery codes. `stepped_up`: also step up the
    session."""
    secret = (await who.client.post("/api/auth/mfa/totp", json={})).json()["secret"]
    # Uses the code of the previous step, so that the current and the next code are unused. Repeated if a step ended
    # meanwhile.
    for _ in range(2):
        answer = await who.client.post("/api/auth/mfa/totp/confirm", json={"code": code_of(secret, -1)})
        if answer.status_code != 400:
            break
    assert answer.status_code == 200, answer.text
    if stepped_up:
        await use(platform, who, answer.json()["tokens"])
    return secret, answer.json()["recovery_codes"]


def code_of(secret: str, steps: int = 0) -> str:
    """Return the app's code after this many steps of 30 s."""
    return pyotp.TOTP(secret).at(int(time()) + 30 * steps)
