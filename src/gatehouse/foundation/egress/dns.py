"""Looks up TXT records in DNS with the system's resolvers."""

from typing import Final, Protocol

import dns.asyncresolver
import dns.exception
import dns.resolver

from gatehouse.foundation.errors import Unavailable

#: maximum duration of one look-up with all its retries
_LOOKUP_TIMEOUT_SECONDS: Final = 5.0


class DnsUnavailable(Unavailable):
    code = "dns_unavailable"
    message = "The DNS server does not respond. Try again in a moment."


class TxtResolver(Protocol):
    async def txt(self, name: str) -> list[str]:
        """Returns the TXT records of a name, or an empty list. Raises `DnsUnavailable`."""


class SystemResolver:
    """Uses `resolver`, or by default a resolver configured by `/etc/resolv.conf` at the first look-up."""

    def __init__(self, resolver: dns.asyncresolver.Resolver | None = None) -> None:
        self._resolver = resolver

    async def txt(self, name: str) -> list[str]:
        try:
            if self._resolver is None:
                self._resolver = dns.asyncresolver.Resolver()
            answer = await self._resolver.resolve(name, "TXT", search=False, lifetime=_LOOKUP_TIMEOUT_SECONDS)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            return []
        except (dns.exception.DNSException, OSError):
            raise DnsUnavailable from None
        return [b"".join(record.strings).decode("utf-8", "replace") for record in answer]
