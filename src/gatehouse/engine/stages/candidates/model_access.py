"""Excludes models that the caller may not use (docs/model-access.md). Judged for every candidate: the named model,
fallbacks, what `auto` chooses, and what policy rules send a call to."""

from gatehouse.engine.exchange import CallRequest
from gatehouse.engine.ports import Ports
from gatehouse.engine.stages.candidates.route import ModelNotFound
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.policy.records import Candidate


def judge(x: CallRequest, candidate: Candidate, ports: Ports) -> Verdict:
    """Refuse a model that the caller may not use as if it did not exist: the refusal repeats the name that the caller
    sent, like that of an unknown name, and never names the catalog entry."""
    policy, model = x.identified.policy, candidate.model
    restricted = model.access == "restricted"
    if policy.access.permits(x.identified.caller.groups, model.provider, model.model_id, restricted=restricted):
        return ALLOW
    return Refuse(ModelNotFound.named(x.call.model))
