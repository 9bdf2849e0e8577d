"""Which entries of the catalog could answer by name, and which routing policy has a say (reference 3, Cost routing
policy). `engine.routing.chain` makes the call's chain of them."""

from gatehouse.engine.exchange import Asked, Candidate
from gatehouse.foundation.errors import NotFound, Refusal
from gatehouse.policy.records import ModelRecord
from gatehouse.policy.routing import RoutingPolicy
from gatehouse.policy.snapshot import Snapshot

#: The model name that leaves the choice to the caller's routing policy.
AUTO = "auto"


class ModelNotFound(NotFound):
    type = "model_not_found"
    code = "model_not_found"

    @classmethod
    def named(cls, name: str) -> "ModelNotFound":
        return cls(f"The model {name[:200]!r} does not exist, or you may not use it. GET /v1/models lists yours.")


def candidates(x: Asked) -> list[Candidate] | Refusal:
    """Without a routing policy `auto` is the catalog's default model. A name that nothing is known by leaves the chain,
    as one that is denied does, so that nobody can tell the two apart."""
    if not x.call.fallbacks:
        only = named(x.identified.policy, x.call.model)
        return [only] if only is not None else ModelNotFound.named(x.call.model)
    found: dict[str, Candidate] = {}
    for name in (x.call.model, *x.call.fallbacks):
        candidate = named(x.identified.policy, name)
        if candidate is not None:
            found.setdefault(f"{candidate.provider.id}/{candidate.model.model_id}", candidate)
    return list(found.values()) or ModelNotFound.named(x.call.model)


def named(policy: Snapshot, name: str) -> Candidate | None:
    model = default_model(policy) if name == AUTO else policy.find_model(name)
    provider = policy.providers.get(model.provider) if model is not None else None
    return None if model is None or provider is None else Candidate(provider, model)


def policy_of(x: Asked) -> RoutingPolicy | None:
    """The caller's routing policy, if there is one."""
    return x.identified.policy.routing.of(x.identified.caller.groups)


def default_model(policy: Snapshot) -> ModelRecord | None:
    return next((model for model in policy.models.values() if model.is_default and model.is_active), None)
