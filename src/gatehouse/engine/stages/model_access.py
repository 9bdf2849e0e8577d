"""Whether the caller may use a model. Judged for every candidate: the named one, fallbacks, and what `auto` picks."""

from gatehouse.engine.exchange import Asked, Candidate
from gatehouse.engine.ports import Ports
from gatehouse.engine.stages.route import ModelNotFound
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict


async def judge(x: Asked, candidate: Candidate, ports: Ports) -> Verdict:
    """A restricted model needs a grant, and there are none without groups; it looks as if it were not there."""
    if candidate.model.access == "restricted":
        return Refuse(ModelNotFound.named(f"{candidate.provider.id}/{candidate.model.model_id}"))
    return ALLOW
