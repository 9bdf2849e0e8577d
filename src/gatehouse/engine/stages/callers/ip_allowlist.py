"""Admits only callers from the organization's address ranges (docs/ip-allowlist.md)."""

from gatehouse.engine.exchange import Identified, Received
from gatehouse.engine.ports import Ports
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.foundation.errors import Forbidden
from gatehouse.foundation.identity import Caller
from gatehouse.policy.snapshot import Snapshot


class AddressNotAllowed(Forbidden):
    code = "ip_not_allowed"
    message = "Your address is not in the organization's allowlist."


def check(x: Identified, ports: Ports) -> Verdict:
    if x.policy.ip_allowlist is None:
        return ALLOW
    error = refused(x.received, x.caller, x.policy)
    return ALLOW if error is None else Refuse(error)


def refused(x: Received, caller: Caller, policy: Snapshot) -> AddressNotAllowed | None:
    if policy.ip_allowlist is None or x.client_address in policy.ip_allowlist:
        return None
    if policy.ip_bypass_for_mfa and caller.has_fresh_factor(x.received_at):
        return None
    return AddressNotAllowed()
