"""Bodies of the endpoints of the IP allowlist."""

from typing import Annotated

from pydantic import AfterValidator, Field

from gatehouse.foundation.egress.networks import network
from gatehouse.foundation.http.bodies import Body, ResponseBody, omitted
from gatehouse.platform.organization.tenants.sources import Sources


def _canonical(cidr: str) -> str:
    try:
        return str(network(cidr))
    except ValueError:
        raise ValueError("is not a CIDR range, such as 192.0.2.0/24 or 2001:db8::/32") from None


def _without_duplicates(cidrs: list[str]) -> list[str]:
    return list(dict.fromkeys(cidrs))


#: An address range in canonical form, without host bits.
Cidr = Annotated[str, Field(max_length=64, examples=["192.0.2.0/24"]), AfterValidator(_canonical)]
Cidrs = Annotated[list[Cidr], Field(max_length=1000), AfterValidator(_without_duplicates)]


class IpAllowlistUpdate(Body):
    """A partial update: omitted fields keep their values."""

    enabled: bool = Field(default_factory=omitted, examples=[True])
    cidrs: Cidrs = Field(default_factory=omitted, description="IPv4 and IPv6 ranges or single addresses.")
    bypass_for_mfa: bool = Field(
        default_factory=omitted, description="Callers with a fresh second factor are accepted from any address."
    )


class IpAllowlist(ResponseBody):
    enabled: bool
    cidrs: Annotated[list[str], Field(examples=[["192.0.2.0/24", "2001:db8::/32"]])]
    bypass_for_mfa: bool
    sources: Annotated[Sources, Field(examples=[{"enabled": "organization", "bypass_for_mfa": "default"}])]
