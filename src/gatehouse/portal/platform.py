"""What the portal asks of the platform, with its platform-wide client (decisions 2 and 8)."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

import msgspec

from gatehouse.foundation.http import forms
from gatehouse.foundation.outbound import Outbound, OutboundFailed, OutboundRequest
from gatehouse.portal.settings import PortalSettings

#: Of an answer: what was done with a thousand records of each kind has room in it.
_MOST_BYTES: Final = 8 * 1024 * 1024
#: How long an answer may take, unless the caller knows better.
_PATIENCE_SECONDS: Final = 30.0
#: A token is asked for anew as long before it ends.
_EARLY_SECONDS: Final = 30
#: What says nothing about the request itself: the same may pass later.
_LATER: Final = frozenset({401, 403, 408, 425, 429})


class PlatformFailed(Exception):
    """One line for a job's record, without secrets."""


class NotConfigured(PlatformFailed):
    """No platform can be asked."""

    def __init__(self) -> None:
        super().__init__("PLATFORM_URL is not set")


class PlatformAway(PlatformFailed):
    """It did not answer, or not to this: trying again may help."""


class PlatformRefused(PlatformFailed):
    """It understood and refuses: the same again would be refused again."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status}: {reason}")
        self.status = status
        self.reason = reason


class PlatformClient:
    """One a process."""

    def __init__(self, settings: PortalSettings, outbound: Outbound) -> None:
        self.configured = settings.platform_url is not None
        #: scans a minute by plan; empty where the platform is not told any
        self.scan_limits: dict[str, int] = dict(settings.portal_scan_rate_limits.items())
        self._base = (settings.platform_url or "").rstrip("/")
        self._client_id = settings.platform_client_id
        self._secret = settings.platform_client_secret
        self._outbound = outbound
        self._token = ""
        self._token_until = 0.0
        self._asking = asyncio.Lock()

    async def make_tenant(self, tenant_id: UUID, *, slug: str, name: str, plan: str) -> None:
        """Once, however often it is asked. Raises `PlatformRefused`, where the slug or the id is another's."""
        body = {"id": str(tenant_id), "slug": slug, "name": name, "plan": plan}
        try:
            await self.call("POST", "/v1/platform/tenants", body)
            if self.scan_limits:
                await self.entitle(tenant_id, plan)
        except PlatformRefused as refused:
            # An earlier attempt's answer may have been lost: then it is there.
            if refused.status != 409 or not await self._entitled(tenant_id, plan):
                raise

    async def entitle(self, tenant_id: UUID, plan: str) -> None:
        """Plan and, where the portal sets them, the limits that come with it. Raises `PlatformRefused`, 404 where there
        is no such tenant."""
        body: dict[str, Any] = {"plan": plan}
        if self.scan_limits:
            body["scan_rate_limit_rpm"] = self.scan_limits.get(plan)
        await self.call("PATCH", f"/v1/platform/tenants/{tenant_id}/entitlements", body)

    async def describe(self, tenant_id: UUID, *, name: str | None = None, contact_email: str | None = None) -> None:
        """Tells what the organization is called and who answers for it; None changes nothing. Raises `PlatformRefused`,
        404 where there is no such tenant."""
        fields = {"name": name, "contact_email": contact_email}
        body = {field: value for field, value in fields.items() if value is not None}
        if body:
            await self.call("PATCH", f"/v1/platform/tenants/{tenant_id}", body)

    async def has_tenant(self, tenant_id: UUID) -> bool:
        """Changes nothing. Raises `PlatformAway`, `NotConfigured`, `PlatformRefused`."""
        try:
            await self.call("PATCH", f"/v1/platform/tenants/{tenant_id}", {})
        except PlatformRefused as refused:
            if refused.status == 404:
                return False
            raise
        return True

    async def _entitled(self, tenant_id: UUID, plan: str) -> bool:
        try:
            await self.entitle(tenant_id, plan)
        except PlatformRefused as refused:
            if refused.status == 404:
                return False
            raise
        return True

    async def register_owner(self, tenant_id: UUID, *, email: str | None, key_prefix: str, digest: bytes) -> str:
        """The tenant's owner, made where there is none of that address, with the key of this hash. The answer is who
        that is on the platform."""
        body = {"email": email, "key_prefix": key_prefix, "key_sha256": digest.hex()}
        answer = await self.call("PUT", f"/v1/platform/tenants/{tenant_id}/owner", body)
        return str(answer["user_id"])

    async def end_tenant(self, tenant_id: UUID) -> None:
        """Once, however often it is asked."""
        try:
            await self.call("DELETE", f"/v1/platform/tenants/{tenant_id}")
        except PlatformRefused as refused:
            if refused.status != 404:
                raise

    async def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, patience: float = _PATIENCE_SECONDS
    ) -> Any:
        """The decoded answer, None where it is empty. Raises `NotConfigured`, `PlatformAway`, `PlatformRefused`."""
        if not self.configured:
            raise NotConfigured
        sent = b"" if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": "application/json"} if sent else {}
        for attempt in (1, 2):
            token = await self._current_token()
            shown = {**headers, "Authorization": f"Bearer {token}"}
            status, answer = await self.ask(method, path, shown, sent, patience=patience)
            if status != 401 or attempt == 2:
                break
            # Its keys were rotated, or the client was: a new token may do.
            self._token_until = 0.0
        if status < 300:
            return answer
        raise _failure(status, answer)

    async def _current_token(self) -> str:
        async with self._asking:
            if time.monotonic() >= self._token_until:
                assert self._secret is not None
                form = {
                    "grant_type": "client_credentials",
                    "client_id": str(self._client_id),
                    "client_secret": self._secret.get_secret_value(),
                    "scope": "admin:write",
                }
                headers = {"Content-Type": forms.MEDIA_TYPE}
                asked_at = time.monotonic()
                status, answer = await self.ask("POST", "/oauth/token", headers, urlencode(form).encode())
                if status != 200:
                    raise PlatformAway(f"no token for PLATFORM_CLIENT_ID: {status}: {_reason(answer)}")
                self._token = str(answer["access_token"])
                self._token_until = asked_at + int(answer["expires_in"]) - _EARLY_SECONDS
        return self._token

    async def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        patience: float = _PATIENCE_SECONDS,
    ) -> tuple[int, Any]:
        """Without the token of ours: status and decoded answer, whatever it is. Raises `PlatformAway`."""
        request = OutboundRequest(
            method=method, url=self._base + path, headers=headers, body=body, first_byte_timeout=patience
        )
        try:
            reply = await self._outbound.send(request)
            try:
                raw = await reply.read(_MOST_BYTES)
            finally:
                await reply.close()
            return reply.status, msgspec.json.decode(raw) if raw else None
        except OutboundFailed as failed:
            raise PlatformAway(failed.reason) from None
        except msgspec.DecodeError:
            raise PlatformAway(f"{reply.status}: not an answer of the platform's") from None


def _failure(status: int, answer: Any) -> PlatformFailed:
    if status >= 500 or status in _LATER:
        return PlatformAway(f"{status}: {_reason(answer)}")
    return PlatformRefused(status, _reason(answer))


def _reason(answer: Any) -> str:
    """The platform's own words, in whichever form."""
    told = answer if isinstance(answer, dict) else {}
    words = told.get("detail") or told.get("message") or told.get("error_description") or told.get("error") or ""
    if isinstance(words, list):
        words = "; ".join(map(_field, words))
    return str(words)[:300]


def _field(fault: Any) -> str:
    """A field that is not good, and why, as the platform lists them."""
    try:
        return f"{'.'.join(map(str, fault['loc'][1:]))}: {fault['msg']}"
    except (KeyError, TypeError):
        return str(fault)
