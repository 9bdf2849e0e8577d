"""Excludes models and providers that a kill switch disables (docs/kill-switch.md)."""

from gatehouse.engine.exchange import CallRequest
from gatehouse.engine.ports import Ports
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.foundation.errors import Unavailable
from gatehouse.policy.catalog import Candidate


class ProviderUnavailable(Unavailable):
    type = "provider_unavailable"
    code = "provider_unavailable"
    message = "The model or its provider is switched off."


def judge(x: CallRequest, candidate: Candidate, ports: Ports) -> Verdict:
    tenant_id = x.identified.policy.tenant_id
    if not candidate.provider.enabled:
        return Refuse(ProviderUnavailable(f"The provider {candidate.provider.id} is disabled."))
    if ports.switches.switched_off(tenant_id, candidate):
        return Refuse(ProviderUnavailable())
    return ALLOW
