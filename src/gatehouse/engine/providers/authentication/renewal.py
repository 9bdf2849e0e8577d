"""A value that expires, such as an access token. It is cached and renewed in the background before it expires: only the
first call waits, for a bounded time. All calls share one renewal."""

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
#: Interval between renewals: a service may return the same value until shortly before it expires.
RENEWAL_INTERVAL_SECONDS: Final = 60
RETRY_INTERVAL_SECONDS: Final = 5


class Expiring(Protocol):
    @property
    def expires_at(self) -> float | None:
        """Unix time; None for a value that does not expire."""


class NotAvailable(Exception):
    """A value cannot be loaded. `cause` is a short text for the log, without secrets. With `is_refused`, the service
    refuses the credentials."""

    def __init__(self, cause: str, *, is_refused: bool = False) -> None:
        self.cause = cause
        self.is_refused = is_refused
        super().__init__(cause)


V = TypeVar("V", bound=Expiring)


class Renewed(Generic[V]):
    """One cached value. `source` names it in the log, `reason` is that of `ProviderFailed` if there is no value."""

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
        needs it, for the log. Raises `ProviderFailed`: after a failed renewal at once, until `RETRY_INTERVAL_SECONDS`
        have passed."""
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
        """Drop a value that a provider refuses, so that the next call waits for another. A new value stays: it would be
        replaced by an equal one."""
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
            # Only these texts are free of secrets and of what a service answered.
            cause = error.cause if isinstance(error, NotAvailable) else type(error).__name__
            log.warning("provider_identity.not_renewed", source=self._source, provider=provider, reason=cause)
        finally:
            self._not_before = self._now() + interval
            self._renewal = None
