"""Assumes a role of AWS with the token of another identity provider, such as that of an EKS service account (IRSA)."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from gatehouse.engine.providers.authentication.renewal import NotAvailable
from gatehouse.engine.providers.authentication.tokens import post
from gatehouse.engine.providers.bedrock.signing import SigningIdentity, domain_of
from gatehouse.foundation.outbound import Outbound

_VERSION: Final = "2011-06-15"
_HEADERS: Final[Mapping[str, str]] = {"Content-Type": "application/x-www-form-urlencoded"}
#: The elements of the answer's credentials. Their values contain no entities.
_ELEMENTS: Final = re.compile(r"<(AccessKeyId|SecretAccessKey|SessionToken|Expiration)>\s*([^<>&\s]+)\s*</\1>")


async def assume_role(
    outbound: Outbound, *, region: str | None, role: str, session: str, token: str, endpoint: str | None = None
) -> SigningIdentity:
    """Return the keys of a role. Raises `NotAvailable` and `OutboundFailed`."""
    form = {
        "Action": "AssumeRoleWithWebIdentity",
        "Version": _VERSION,
        "RoleArn": role,
        "RoleSessionName": session,
        "WebIdentityToken": token,
    }
    answer = await post(outbound, endpoint or _endpoint(region), _HEADERS, urlencode(form).encode())
    values = dict(_ELEMENTS.findall(answer.decode(errors="replace")))
    try:
        return SigningIdentity(
            access_key_id=values["AccessKeyId"],
            secret_access_key=values["SecretAccessKey"],
            session_token=values["SessionToken"],
            expires_at=datetime.fromisoformat(values["Expiration"]).timestamp(),
        )
    except (KeyError, ValueError):
        raise NotAvailable("the answer of the security token service is not valid") from None


def _endpoint(region: str | None) -> str:
    if region is None:
        return "https://sts.amazonaws.com/"
    return f"https://sts.{region}.{domain_of(region)}/"
