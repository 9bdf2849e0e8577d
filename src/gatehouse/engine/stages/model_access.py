"""Whether the caller may use a model. Judged for every candidate: the named one, fallbacks, what `auto` picks, and what
policy rules send a call to."""

from gatehouse.engine.candidate import Candidate
from gatehouse.engine.exchange import Asked
from gatehouse.engine.ports import Ports
from gatehouse.engine.stages.route import ModelNotFound
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict


def judge(x: Asked, candidate: Candidate, ports: Ports) -> Verdict:
    """A model that the caller may not use looks as if it were not there: the refusal names what the caller asked for,
    as that of an unknown name does, never the entry that was found by it."""
    policy, model = x.identified.policy, candidate.model
    restricted = model.access == "restricted"
    if policy.access.permits(x.identified.caller.groups, model.provider, model.model_id, restricted=restricted):
        return ALLOW
    return Refuse(ModelNotFound.named(x.call.model))
