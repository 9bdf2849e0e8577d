"""Checks right before the first byte of a call that its permission was not revoked while the request waited
(docs/kill-switch.md)."""

from gatehouse.engine.exchange import CallRequest
from gatehouse.engine.ports import Ports
from gatehouse.engine.stages.candidates.kill_switch import ProviderUnavailable, was_removed
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.foundation.errors import Unauthenticated, Unavailable
from gatehouse.policy.catalog import Candidate


class CredentialRevoked(Unauthenticated):
    code = "credential_revoked"
    message = "The credential was revoked while the request waited."


class OutOfTouch(Unavailable):
    """The local state of the switches is too old to send a call, because this process was suspended or is overloaded:
    503."""

    code = "switch_state_unknown"
    message = "This worker's state of the kill switches is out of date. Try again."


def check(x: CallRequest, candidate: Candidate, ports: Ports) -> Verdict:
    """Check a call of a model. The verdict is the refusal `OutOfTouch` if the switches must be synchronized first."""
    switches, identified = ports.switches, x.identified
    if not switches.up_to_date():
        return Refuse(OutOfTouch())
    if switches.switched_off(identified.policy.tenant_id, candidate) or was_removed(x, candidate):
        return Refuse(ProviderUnavailable())
    if not ports.credentials.still_good(identified.caller):
        return Refuse(CredentialRevoked())
    return ALLOW
