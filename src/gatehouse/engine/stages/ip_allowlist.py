"""Lets in only callers from the organization's address ranges (reference 1, Authentication, 8)."""

from ipaddress import ip_address

from gatehouse.engine.exchange import Identified
from gatehouse.engine.ports import Ports
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.foundation.errors import Forbidden
from gatehouse.policy.snapshot import Snapshot


class AddressNotAllowed(Forbidden):
    code = "ip_not_allowed"
    message = "Your address is not in the organization's allowlist."


async def check(x: Identified, ports: Ports) -> Verdict:
    error = refused(x.received.client_address, x.policy)
    return ALLOW if error is None else Refuse(error)


def refused(client_address: str, policy: Snapshot) -> AddressNotAllowed | None:
    if policy.ip_allowlist is None:
        return None
    try:
        address = ip_address(client_address)
    except ValueError:
        return AddressNotAllowed()
    return None if any(address in network for network in policy.ip_allowlist) else AddressNotAllowed()
