"""Addresses that no provider lives at: the metadata services of clouds, which hand credentials to whoever asks.

Private addresses are allowed for providers (a local runtime has one); these are not, however they are written.
"""

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from gatehouse.foundation.outbound import OutboundFailed

_NETWORKS = tuple(
    ip_network(cidr)
    for cidr in (
        "169.254.0.0/16",  # link-local: the metadata services of most clouds, container credentials too
        "fe80::/10",
        "fd00:ec2::/32",
        "100.100.100.200/32",
        "168.63.129.16/32",
        "192.0.0.192/32",
    )
)
#: Known by name too, because through a proxy the name is resolved elsewhere.
_NAMES = frozenset({"metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"})
_NAT64 = ip_network("64:ff9b::/96")


class AddressRefused(OutboundFailed):
    """The URL leads to a cloud's metadata service (decisions 7)."""

    reason = "address_refused"


@lru_cache(maxsize=1024)
def is_metadata_address(text: str) -> bool:
    """Whether an IP address is a metadata service's, also inside an IPv6 wrapping. False for what is no address."""
    try:
        address = ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        address = _unwrapped(address)
    return any(address in network for network in _NETWORKS if network.version == address.version)


def is_metadata_host(host: str) -> bool:
    """The same for the host part of a URL, a name included."""
    return host.rstrip(".").lower() in _NAMES or is_metadata_address(host)


def _unwrapped(address: IPv6Address) -> IPv4Address | IPv6Address:
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
