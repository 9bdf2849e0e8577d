"""Lists the models of the catalog that a caller may use."""

from gatehouse.engine import pipeline
from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.exchange import CallRequest, Identified
from gatehouse.engine.ports import Ports
from gatehouse.engine.verdict import Refuse
from gatehouse.policy.records import Candidate, ModelRecord


def usable_models(x: Identified, ports: Ports) -> list[ModelRecord]:
    """Return the active models that are not hidden from the caller. Models under a kill switch are included, because a
    kill switch is temporary."""
    call_request = CallRequest(identified=x, call=ModelCall(dialect="", model="", stream=False, body={}))
    usable = []
    for model in x.policy.models.values():
        provider = x.policy.providers.get(model.provider)
        if model.is_active and provider is not None and provider.enabled:
            candidate = Candidate(provider, model)
            if not any(isinstance(judge(call_request, candidate, ports), Refuse) for judge in pipeline.LISTED):
                usable.append(model)
    return usable
