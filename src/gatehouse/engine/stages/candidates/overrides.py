"""Applies the overrides of an outpost's operator, which take precedence over the organization's policy: models that are
routed elsewhere, and providers that are disabled for a model (docs/outposts.md)."""

from gatehouse.engine.exchange import CallRequest
from gatehouse.engine.ports import Ports
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.foundation.errors import Unavailable
from gatehouse.policy.catalog import Candidate


class ProvidersDisabled(Unavailable):
    type = "providers_disabled"
    code = "providers_disabled"
    message = "All providers of this model are disabled here by an override."


class OverrideFails(Unavailable):
    type = "override_error"
    code = "override_error"

    @classmethod
    def of(cls, target: str) -> "OverrideFails":
        provider = target.partition("/")[0]
        return cls(f"An override routes this model to {target!r}, but the policy has no such model at {provider!r}.")


def check(x: CallRequest, ports: Ports) -> Verdict:
    overrides = x.identified.policy.overrides
    if overrides is not None:
        for name in (x.call.model, *x.call.fallbacks):
            target = overrides.routes.get(name)
            if target is not None and x.identified.policy.find_model(name) is None:
                return Refuse(OverrideFails.of(target))
    return ALLOW


def judge(x: CallRequest, candidate: Candidate, ports: Ports) -> Verdict:
    overrides = x.identified.policy.overrides
    if overrides is not None and overrides.disables(candidate.provider.id, candidate.model.model_id):
        return Refuse(ProvidersDisabled())
    return ALLOW
