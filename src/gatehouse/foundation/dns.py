"""What the domain name system says: TXT records, by the system's resolvers."""

from typing import Final, Protocol

import dns.asyncresolver
import dns.exception
import dns.resolver

from gatehouse.foundation.errors import Unavailable

#: Seconds for a question with all its repetitions.
_PATIENCE: Final = 5.0


class DnsUnavailable(Unavailable):
    code = "dns_unavailable"
    message = "The domain name system gives no answer now. Try again in a moment."


class TxtResolver(Protocol):
    async def txt(self, name: str) -> list[str]:
        """The TXT records of a name; empty where there are none. Raises `DnsUnavailable`."""


class SystemResolver:
    """`resolver` None: as `/etc/resolv.conf` says when it is first asked."""

    def __init__(self, resolver: dns.asyncresolver.Resolver | None = None) -> None:
        self._resolver = resolver

    async def txt(self, name: str) -> list[str]:
        try:
            if self._resolver is None:
                self._resolver = dns.asyncresolver.Resolver()
            answer = await self._resolver.resolve(name, "TXT", search=False, lifetime=_PATIENCE)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            return []
        except (dns.exception.DNSException, OSError):
            raise DnsUnavailable from None
        return [b"".join(record.strings).decode("utf-8", "replace") for record in answer]
