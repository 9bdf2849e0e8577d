"""Which messages the portal accepts as notices of the platform."""

import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.portal.platform_link.test_platform_keys import answering
from tests.support.portal import RunningPortal

from gatehouse.foundation import jwt
from gatehouse.foundation.jwt import SigningKey, key_set
from gatehouse.portal.settings import PortalSettings

SIGNER = SigningKey.generate()
ISSUER = "https://platform.example.com"


def signed(audience: str, **claims: Any) -> str:
    now = int(time.time())
    return jwt.sign({"iss": ISSUER, "aud": audience, "iat": now, "exp": now + 60, "sub": "platform", **claims}, SIGNER)


@pytest.fixture(scope="module")
async def notified(portal_settings: PortalSettings) -> AsyncIterator[RunningPortal]:
    """Yields a portal whose platform signs with `SIGNER`."""
    # One document is both the key set and the configuration.
    document = json.dumps({"issuer": ISSUER, **key_set([SIGNER])}).encode()
    async with answering(document) as (address, _):
        settings = portal_settings.model_copy(
            update={"platform_url": address, "platform_client_id": SIGNER.kid, "egress_allowlist": ("127.0.0.0/8",)}
        )
        async with RunningPortal.start(settings) as running:
            yield running


async def status(portal: RunningPortal, **claims: Any) -> int:
    """Returns the status of the response to a notice whose token has these claims."""
    token = signed(portal.host.settings.issuer, **claims)
    return (await portal.client(token).post("/v1/platform-notices", json={"notices": []})).status_code


@pytest.mark.parametrize("token_type", [None, "", "m2m", "access", "id_token", "Platform_Notice", ["platform_notice"]])
async def test_a_platform_token_of_another_type_is_refused(notified: RunningPortal, token_type: object) -> None:
    """The audience is correct, and the kind of the token is not (RFC 8725, 3.11 and 3.12)."""
    assert await status(notified, **({} if token_type is None else {"token_type": token_type})) == 401


async def test_a_notice_of_the_platform_is_accepted(notified: RunningPortal) -> None:
    assert await status(notified, token_type="platform_notice") == 200
