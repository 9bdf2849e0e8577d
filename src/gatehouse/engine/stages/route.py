"""Which entries of the catalog could answer by name, and which routing policy has a say (reference 3, Cost routing
policy). `engine.routing.chain` makes the call's chain of them."""

from collections.abc import Sequence

from gatehouse.engine.candidate import Candidate
from gatehouse.engine.exchange import Asked
from gatehouse.foundation.errors import BadRequest, NotFound, Refusal
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


class AmbiguousModel(BadRequest):
    """A bare model id of several providers, none of which the routing policy may choose."""

    code = "ambiguous_model"

    @classmethod
    def of(cls, name: str, policy: RoutingPolicy, usable: Sequence[str]) -> "AmbiguousModel":
        return cls(
            f"Several providers have the model {name[:200]!r}, and the routing policy {policy.name!r} chooses none of "
            f"them. Name one: {', '.join(usable)}.",
            param="model",
        )


def candidates(x: Asked) -> list[Candidate] | Refusal:
    """Without a routing policy `auto` is the catalog's default model. A name that nothing is known by leaves the chain,
    as one that is denied does, so that nobody can tell the two apart."""
    found: dict[str, Candidate] = {}
    for name in (x.call.model, *x.call.fallbacks):
        for candidate in named(x.identified.policy, name):
            found.setdefault(f"{candidate.provider.id}/{candidate.model.model_id}", candidate)
    return list(found.values()) or ModelNotFound.named(x.call.model)


def named(policy: Snapshot, name: str) -> list[Candidate]:
    """The entries that a name stands for, the cheapest first: several where several providers have a bare model id."""
    if name == AUTO:
        default = default_model(policy)
        models: tuple[ModelRecord, ...] = () if default is None else (default,)
    else:
        models = policy.find_models(name)
    return [
        Candidate(policy.providers[model.provider], model) for model in models if model.provider in policy.providers
    ]


def policy_of(x: Asked) -> RoutingPolicy | None:
    """The caller's routing policy, if there is one."""
    return x.identified.policy.routing.of(x.identified.caller.groups)


def default_model(policy: Snapshot) -> ModelRecord | None:
    return next((model for model in policy.models.values() if model.is_default and model.is_active), None)
