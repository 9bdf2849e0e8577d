"""Client of the platform's API. It authenticates as the portal's OAuth client, which is valid for the whole
platform."""

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

#: Maximum size of a response. It is sufficient for the result of an import of a thousand records of each kind.
_MAX_RESPONSE_BYTES: Final = 8 * 1024 * 1024
#: Default of the maximum time for a response.
_TIMEOUT_SECONDS: Final = 30.0
#: The token is replaced this number of seconds before it expires.
_RENEW_BEFORE_SECONDS: Final = 30
#: Statuses with which a retry may succeed, because they do not depend on the content of the request.
_RETRYABLE_STATUSES: Final = frozenset({401, 403, 408, 425, 429})


class PlatformError(Exception):
    """A call has failed. The message is one line without secrets, which is stored with a job."""


class PlatformNotConfigured(PlatformError):
    """`PLATFORM_URL` is not set."""

    def __init__(self) -> None:
        super().__init__("PLATFORM_URL is not set")


class PortalPlatformUnavailable(PlatformError):
    """The platform did not respond, or cannot process the call now. A retry may succeed."""


class PortalPlatformRefusal(PlatformError):
    """The platform refused the call. It would also refuse a retry."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status}: {reason}")
        self.status = status
        self.reason = reason


class PlatformClient:
    """The client of the platform in one process."""

    def __init__(self, settings: PortalSettings, outbound: Outbound) -> None:
        self.configured = settings.platform_url is not None
        #: scans a minute by plan; empty if the portal sets no limits
        self.scan_limits: dict[str, int] = dict(settings.portal_scan_rate_limits.items())
        self._base = (settings.platform_url or "").rstrip("/")
        self._client_id = settings.platform_client_id
        self._secret = settings.platform_client_secret
        self._outbound = outbound
        self._token = ""
        self._token_until = 0.0
        self._token_lock = asyncio.Lock()

    async def make_tenant(self, tenant_id: UUID, *, slug: str, name: str, plan: str) -> None:
        """Creates the tenant. The call may be repeated. Raises `PortalPlatformRefusal` if another organization has the
        slug or the id."""
        body = {"id": str(tenant_id), "slug": slug, "name": name, "plan": plan}
        try:
            await self.call("POST", "/v1/platform/tenants", body)
            if self.scan_limits:
                await self.set_plan(tenant_id, plan)
        except PortalPlatformRefusal as error:
            # The tenant may exist because an earlier attempt has created it and its response was lost.
            if error.status != 409 or not await self._has_plan_set(tenant_id, plan):
                raise

    async def set_plan(self, tenant_id: UUID, plan: str) -> None:
        """Sets the plan of the tenant, and the limits of the plan if `scan_limits` is not empty. Raises
        `PortalPlatformRefusal`, with status 404 if there is no such tenant."""
        body: dict[str, Any] = {"plan": plan}
        if self.scan_limits:
            body["scan_rate_limit_rpm"] = self.scan_limits.get(plan)
        await self.call("PATCH", f"/v1/platform/tenants/{tenant_id}/entitlements", body)

    async def update_tenant(
        self, tenant_id: UUID, *, name: str | None = None, contact_email: str | None = None
    ) -> None:
        """Sets the name and the contact address of the tenant. A value of None is not sent. Raises
        `PortalPlatformRefusal`, with status 404 if there is no such tenant."""
        fields = {"name": name, "contact_email": contact_email}
        body = {field: value for field, value in fields.items() if value is not None}
        if body:
            await self.call("PATCH", f"/v1/platform/tenants/{tenant_id}", body)

    async def has_tenant(self, tenant_id: UUID) -> bool:
        """Returns whether the tenant exists. Sends an update without fields, which changes nothing. Raises
        `PortalPlatformUnavailable`, `PlatformNotConfigured`, `PortalPlatformRefusal`."""
        try:
            await self.call("PATCH", f"/v1/platform/tenants/{tenant_id}", {})
        except PortalPlatformRefusal as error:
            if error.status == 404:
                return False
            raise
        return True

    async def _has_plan_set(self, tenant_id: UUID, plan: str) -> bool:
        try:
            await self.set_plan(tenant_id, plan)
        except PortalPlatformRefusal as error:
            if error.status == 404:
                return False
            raise
        return True

    async def register_owner(self, tenant_id: UUID, *, email: str | None, key_prefix: str, digest: bytes) -> str:
        """Registers the owner of the tenant and the owner's API key, of which only the hash is sent. The platform
        creates the user if no user has the address. Returns the user's id on the platform."""
        body = {"email": email, "key_prefix": key_prefix, "key_sha256": digest.hex()}
        response = await self.call("PUT", f"/v1/platform/tenants/{tenant_id}/owner", body)
        return str(response["user_id"])

    async def end_tenant(self, tenant_id: UUID) -> None:
        """Deletes the tenant. The call may be repeated."""
        try:
            await self.call("DELETE", f"/v1/platform/tenants/{tenant_id}")
        except PortalPlatformRefusal as error:
            if error.status != 404:
                raise

    async def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        timeout_seconds: float = _TIMEOUT_SECONDS,
    ) -> Any:
        """Calls the platform and returns the decoded response, or None if it is empty. Raises `PlatformNotConfigured`,
        `PortalPlatformUnavailable`, `PortalPlatformRefusal`."""
        if not self.configured:
            raise PlatformNotConfigured
        content = b"" if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": "application/json"} if content else {}
        for attempt in (1, 2):
            token = await self._current_token()
            authenticated = {**headers, "Authorization": f"Bearer {token}"}
            status, response = await self.request(method, path, authenticated, content, timeout_seconds=timeout_seconds)
            if status != 401 or attempt == 2:
                break
            # The platform's keys or the client's secret may have been rotated. Try again with a new token.
            self._token_until = 0.0
        if status < 300:
            return response
        raise _failure(status, response)

    async def _current_token(self) -> str:
        async with self._token_lock:
            if time.monotonic() >= self._token_until:
                assert self._secret is not None
                form = {
                    "grant_type": "client_credentials",
                    "client_id": str(self._client_id),
                    "client_secret": self._secret.get_secret_value(),
                    "scope": "admin:write",
                }
                headers = {"Content-Type": forms.MEDIA_TYPE}
                requested_at = time.monotonic()
                status, response = await self.request("POST", "/oauth/token", headers, urlencode(form).encode())
                if status != 200:
                    raise PortalPlatformUnavailable(f"no token for PLATFORM_CLIENT_ID: {status}: {_reason(response)}")
                self._token = str(response["access_token"])
                self._token_until = requested_at + int(response["expires_in"]) - _RENEW_BEFORE_SECONDS
        return self._token

    async def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        timeout_seconds: float = _TIMEOUT_SECONDS,
    ) -> tuple[int, Any]:
        """Sends a request without the portal's token. Returns the status and the decoded response. Raises
        `PortalPlatformUnavailable`."""
        request = OutboundRequest(
            method=method, url=self._base + path, headers=headers, body=body, first_byte_timeout=timeout_seconds
        )
        try:
            reply = await self._outbound.send(request)
            try:
                raw = await reply.read(_MAX_RESPONSE_BYTES)
            finally:
                await reply.close()
            return reply.status, msgspec.json.decode(raw) if raw else None
        except OutboundFailed as error:
            raise PortalPlatformUnavailable(error.reason) from None
        except msgspec.DecodeError:
            raise PortalPlatformUnavailable(f"{reply.status}: the response is not JSON") from None


def _failure(status: int, response: Any) -> PlatformError:
    if status >= 500 or status in _RETRYABLE_STATUSES:
        return PortalPlatformUnavailable(f"{status}: {_reason(response)}")
    return PortalPlatformRefusal(status, _reason(response))


def _reason(response: Any) -> str:
    """Returns the message in the platform's response, for each of its error forms."""
    fields = response if isinstance(response, dict) else {}
    reason = (
        fields.get("detail") or fields.get("message") or fields.get("error_description") or fields.get("error") or ""
    )
    if isinstance(reason, list):
        reason = "; ".join(map(_field, reason))
    return str(reason)[:300]


def _field(fault: Any) -> str:
    """Returns the text for an item of the platform's list of invalid fields: the field and its fault."""
    try:
        return f"{'.'.join(map(str, fault['loc'][1:]))}: {fault['msg']}"
    except (KeyError, TypeError):
        return str(fault)
