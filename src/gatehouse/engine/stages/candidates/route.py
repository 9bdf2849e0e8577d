"""Finds the catalog entries that a model name refers to, and the caller's routing policy (docs/cost-routing.md).
`engine.routing.chain` builds the chain of candidates from the entries."""

from collections.abc import Sequence

from gatehouse.engine.exchange import CallRequest
from gatehouse.foundation.errors import BadRequest, NotFound, Refusal
from gatehouse.policy.catalog import Candidate, ModelRecord
from gatehouse.policy.routing import RoutingPolicy
from gatehouse.policy.snapshot import Snapshot

#: The model name with which the caller's routing policy chooses the model.
AUTO = "auto"


class ModelNotFound(NotFound):
    type = "model_not_found"
    code = "model_not_found"

    @classmethod
    def named(cls, name: str) -> "ModelNotFound":
        return cls(
            f"The model {name[:200]!r} does not exist, or you may not use it."
            " GET /v1/models lists the models that you can use."
        )


class AmbiguousModel(BadRequest):
    """Several providers have the bare model id that the call names, and the routing policy may choose none of them:
    400."""

    code = "ambiguous_model"

    @classmethod
    def of(cls, name: str, policy: RoutingPolicy, usable: Sequence[str]) -> "AmbiguousModel":
        return cls(
            f"Several providers have the model {name[:200]!r}, and the routing policy {policy.name!r} chooses none of "
            f"them. Name one: {', '.join(usable)}.",
            param="model",
        )


def candidates(x: CallRequest) -> list[Candidate] | Refusal:
    """Return the candidates that the call names, or a refusal. Without a routing policy, `auto` is the catalog's
    default model. An unknown name leaves no candidate, as a denied name does, so that a caller cannot distinguish the
    two."""
    by_name: dict[str, Candidate] = {}
    for name in (x.call.model, *x.call.fallbacks):
        for candidate in named(x.identified.policy, name):
            by_name.setdefault(f"{candidate.provider.id}/{candidate.model.model_id}", candidate)
    return list(by_name.values()) or ModelNotFound.named(x.call.model)


def named(policy: Snapshot, name: str) -> list[Candidate]:
    """Return the catalog entries for a name, the cheapest first. A bare model id has several entries if several
    providers have it."""
    if name == AUTO:
        default = default_model(policy)
        models: tuple[ModelRecord, ...] = () if default is None else (default,)
    else:
        models = policy.find_models(name)
    return [
        Candidate(policy.providers[model.provider], model) for model in models if model.provider in policy.providers
    ]


def policy_of(x: CallRequest) -> RoutingPolicy | None:
    """Return the caller's routing policy, or None if the caller has none."""
    return x.identified.policy.routing.of(x.identified.caller.groups)


def default_model(policy: Snapshot) -> ModelRecord | None:
    return next((model for model in policy.models.values() if model.is_default and model.is_active), None)
