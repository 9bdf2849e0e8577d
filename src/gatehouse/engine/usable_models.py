"""Lists the models of the catalog and the model aliases that a caller may use."""

from collections.abc import Iterable
from typing import Final

from gatehouse.engine import pipeline
from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.exchange import CallRequest, Identified
from gatehouse.engine.ports import Ports
from gatehouse.engine.verdict import Refuse
from gatehouse.policy.catalog import Candidate, ModelRecord

#: Owner of an alias in the list of models.
ORGANIZATION: Final = "organization"


def usable_models(x: Identified, ports: Ports) -> list[ModelRecord]:
    """Return the active models that are not hidden from the caller. Models under a kill switch are included, because a
    kill switch is temporary."""
    call_request = _call_request(x)
    usable = []
    for model in x.policy.models.values():
        provider = x.policy.providers.get(model.provider)
        if model.is_active and provider is not None and _may_use(call_request, Candidate(provider, model), ports):
            usable.append(model)
    return usable


def usable_aliases(x: Identified, ports: Ports) -> list[ModelRecord]:
    """Return the model aliases with a live deployment that the caller may use. The entry has the alias's name as its
    `model_id`, and the smallest limits of these deployments."""
    if not x.policy.aliases:
        return []
    call_request = _call_request(x)
    usable = []
    for name in x.policy.aliases:
        alias = x.policy.find_alias(name)
        live = () if alias is None else alias.live
        models = [
            deployment.candidate.model for deployment in live if _may_use(call_request, deployment.candidate, ports)
        ]
        if alias is not None and models:
            usable.append(
                ModelRecord(
                    id=alias.id,
                    provider=ORGANIZATION,
                    model_id=name,
                    context_window=_smallest(model.context_window for model in models),
                    max_output_tokens=_smallest(model.max_output_tokens for model in models),
                    created_at=max(model.created_at for model in models),
                )
            )
    return usable


def _call_request(x: Identified) -> CallRequest:
    return CallRequest(identified=x, call=ModelCall(dialect="", model="", stream=False, body={}))


def _may_use(x: CallRequest, candidate: Candidate, ports: Ports) -> bool:
    if not candidate.provider.enabled:
        return False
    return not any(isinstance(judge(x, candidate, ports), Refuse) for judge in pipeline.LISTED)


def _smallest(limits: Iterable[int | None]) -> int | None:
    """Return the smallest limit, or None if one of them is unknown."""
    known: list[int] = []
    for limit in limits:
        if limit is None:
            return None
        known.append(limit)
    return min(known)
