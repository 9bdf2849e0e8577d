"""Caches a value that expires, such as an access token, and renews it in the background before it expires. A call waits
only if there is no valid value, and only for a bounded time. All calls share one renewal."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, Generic, Protocol, TypeVar

import structlog

from gatehouse.engine.providers.failure import ProviderFailed
from gatehouse.foundation.outbound import OutboundFailed

log = structlog.get_logger(__name__)

#: Timeout of all requests of one renewal together.
RENEWAL_TIMEOUT_SECONDS: Final = 5.0
#: Time before its expiry at which a value is renewed in the background.
RENEW_BEFORE_EXPIRY_SECONDS: Final = 15 * 60
#: A value with less time until its expiry is not used.
MIN_LIFETIME_SECONDS: Final = 30
#: Minimum interval between renewals. A service may return the same value until shortly before it expires.
RENEWAL_INTERVAL_SECONDS: Final = 60
RETRY_INTERVAL_SECONDS: Final = 5


class Expiring(Protocol):
    @property
    def expires_at(self) -> float | None:
        """Unix time; None for a value that does not expire."""


class NotAvailable(Exception):
    """A value cannot be loaded. `cause` is a short text for the log, without secrets. `is_refused` is true if the
    service refused the credentials."""

    def __init__(self, cause: str, *, is_refused: bool = False) -> None:
        self.cause = cause
        self.is_refused = is_refused
        super().__init__(cause)


V = TypeVar("V", bound=Expiring)


class Renewed(Generic[V]):
    """One cached value. `source` is its name in the log. `reason` is the reason of `ProviderFailed` if there is no
    value."""

    def __init__(self, source: str, reason: str, now: Callable[[], float] = time.time) -> None:
        self._source = source
        self._reason = reason
        self._now = now
        self._value: V | None = None
        self._obtained_at = 0.0
        self._renewal: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self._is_refused = False

    async def get(self, load: Callable[[], Awaitable[V]], provider: str | None = None) -> V:
        """Return a value that is valid for at least `MIN_LIFETIME_SECONDS`. `provider` is the id of the provider that
        needs it, for the log. Raises `ProviderFailed` if there is no such value. For `RETRY_INTERVAL_SECONDS` after a
        failed renewal, it is raised without a new attempt."""
        remaining = self._remaining_seconds()
        if remaining < RENEW_BEFORE_EXPIRY_SECONDS and self._renewal is None and self._now() >= self._not_before:
            self._renewal = asyncio.create_task(self._renew(load, provider))
        if remaining <= MIN_LIFETIME_SECONDS and self._renewal is not None:
            # Shielded, so that a cancelled request does not cancel the renewal for the others.
            await asyncio.shield(self._renewal)
        if self._value is None or self._remaining_seconds() <= MIN_LIFETIME_SECONDS:
            raise ProviderFailed("unauthorized" if self._is_refused else self._reason)
        return self._value

    def discard(self, value: V) -> None:
        """Drop a value that a provider has refused, so that the next call waits for another. A value younger than
        `RENEWAL_INTERVAL_SECONDS` is kept, because the service would return the same value again."""
        if self._value is value and self._now() - self._obtained_at >= RENEWAL_INTERVAL_SECONDS:
            self._value = None
            self._not_before = 0.0

    def _remaining_seconds(self) -> float:
        """Return the seconds until the value expires."""
        if self._value is None:
            return 0.0
        return float("inf") if self._value.expires_at is None else self._value.expires_at - self._now()

    async def _renew(self, load: Callable[[], Awaitable[V]], provider: str | None) -> None:
        interval = RETRY_INTERVAL_SECONDS
        try:
            async with asyncio.timeout(RENEWAL_TIMEOUT_SECONDS):
                self._value = await load()
            self._obtained_at = self._now()
            self._is_refused = False
            interval = RENEWAL_INTERVAL_SECONDS
        except (NotAvailable, OutboundFailed, OSError, TimeoutError, ValueError) as error:
            self._is_refused = isinstance(error, NotAvailable) and error.is_refused
            # The text of any other error may contain secrets or the answer of a service, so only its type is logged.
            cause = error.cause if isinstance(error, NotAvailable) else type(error).__name__
            log.warning("provider_identity.not_renewed", source=self._source, provider=provider, reason=cause)
        finally:
            self._not_before = self._now() + interval
            self._renewal = None
