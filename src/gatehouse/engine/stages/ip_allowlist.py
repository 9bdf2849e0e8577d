"""Lets in only callers from the organization's address ranges, where it enforces some (reference 1, Authentication, 8)."""

from ipaddress import ip_address

from gatehouse.engine.exchange import Identified
from gatehouse.engine.ports import Ports
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.foundation.errors import Forbidden


class AddressNotAllowed(Forbidden):
    code = "ip_not_allowed"
    message = "Your address is not in the organization's allowlist."


async def check(x: Identified, ports: Ports) -> Verdict:
    allowed = x.policy.ip_allowlist
    if allowed is None:
        return ALLOW
    try:
        address = ip_address(x.received.client_address)
    except ValueError:
        return Refuse(AddressNotAllowed())
    return ALLOW if any(address in network for network in allowed) else Refuse(AddressNotAllowed())
