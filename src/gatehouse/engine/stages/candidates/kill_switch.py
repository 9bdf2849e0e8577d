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


def was_removed(x: CallRequest, candidate: Candidate) -> bool:
    """Return whether a model was removed from the catalog or deactivated while the call waited for an approval. The
    switches do not know removed models."""
    if not x.later_policies:
        return False
    policy = x.later_policies[-1]
    model = policy.models.get(f"{candidate.provider.id}/{candidate.model.model_id}")
    provider = policy.providers.get(candidate.provider.id)
    if model is None or model.id != candidate.model.id or not model.is_active:
        return True
    return provider is None or not provider.enabled


def judge(x: CallRequest, candidate: Candidate, ports: Ports) -> Verdict:
    tenant_id = x.identified.policy.tenant_id
    if not candidate.provider.enabled:
        return Refuse(ProviderUnavailable(f"The provider {candidate.provider.id} is disabled."))
    if ports.switches.switched_off(tenant_id, candidate):
        return Refuse(ProviderUnavailable())
    return ALLOW
