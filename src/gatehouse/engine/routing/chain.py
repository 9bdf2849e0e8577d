"""Which places may answer a call, in which order: every candidate judged by itself, wherever it comes from."""

from typing import NamedTuple

from gatehouse.engine import pipeline
from gatehouse.engine.exchange import Asked, Candidate
from gatehouse.engine.ports import Ports
from gatehouse.engine.stages import route
from gatehouse.engine.verdict import ALLOW, Hold, Refuse, Reroute, Verdict
from gatehouse.foundation.errors import Refusal


class _Place(NamedTuple):
    """`hold`: a person has to agree to it."""

    candidate: Candidate
    hold: Hold | None


async def choose(x: Asked, ports: Ports) -> Verdict:
    """Sets the call's chain: what nothing speaks against, healthy ones first. The first refusal if none is left.

    A candidate that a rule sends elsewhere makes room for the other, which is judged in its turn. Nobody is asked in
    the middle of a call: where the first choice needs no approval, fallbacks that need one leave the chain; where it
    needs one, that is asked for before the call, and holds for fallbacks of the same rule.
    """
    found = route.candidates(x)
    if isinstance(found, Refusal):
        return Refuse(found)
    places: dict[str, _Place] = {}
    first: Refuse | None = None
    for candidate in found:
        place = await _placed(x, candidate, ports)
        if isinstance(place, Refuse):
            first = first or place
        else:
            places.setdefault(_name(place.candidate), place)
    if not places:
        assert first is not None
        return first
    left = list(places.values())
    if len(left) > 1:
        tenant_id = x.identified.policy.tenant_id
        # An unhealthy one is the last resort, not out: its health may be what this request finds out.
        left.sort(key=lambda place: not ports.switches.healthy(tenant_id, place.candidate.provider.id))
    hold = left[0].hold
    agreed = {None, hold.ask.rule_id if hold else None}
    x.chain = tuple(each.candidate for each in left if (each.hold and each.hold.ask.rule_id) in agreed)
    return hold or ALLOW


async def _placed(x: Asked, candidate: Candidate, ports: Ports) -> _Place | Refuse:
    """The candidate, or what rules put in its place; or why neither may answer."""
    seen: set[str] = set()
    while True:
        seen.add(_name(candidate))
        verdict = await _judged(x, candidate, ports)
        if isinstance(verdict, Refuse):
            return verdict
        if not isinstance(verdict, Reroute):
            return _Place(candidate, verdict)
        if _name(verdict.candidate) in seen:
            return Refuse(verdict.circle)
        candidate = verdict.candidate


async def _judged(x: Asked, candidate: Candidate, ports: Ports) -> Refuse | Reroute | Hold | None:
    hold: Hold | None = None
    for judge in pipeline.OF_A_CANDIDATE:
        verdict = await judge(x, candidate, ports)
        if isinstance(verdict, Refuse | Reroute):
            return verdict
        if isinstance(verdict, Hold):
            hold = hold or verdict
    return hold


def _name(candidate: Candidate) -> str:
    return f"{candidate.provider.id}/{candidate.model.model_id}"
