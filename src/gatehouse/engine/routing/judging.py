"""Judges candidates: decides which of them may answer a call."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from gatehouse.engine.exchange import CallRequest
from gatehouse.engine.ports import Ports
from gatehouse.engine.routing.circuits import CircuitKey
from gatehouse.engine.routing.cooldowns import Cooldowns
from gatehouse.engine.verdict import ALLOW, Hold, Refuse, Reroute, Verdict
from gatehouse.policy.aliases import Alias, Deployment
from gatehouse.policy.catalog import Candidate


class JudgedCandidate(NamedTuple):
    """A candidate that may answer. If `hold` is set, a person must approve it first."""

    candidate: Candidate
    hold: Hold | None


#: Decides whether a candidate may answer a call, without waiting (`pipeline.CANDIDATE`).
CandidateJudge: TypeAlias = Callable[[CallRequest, Candidate, Ports], Verdict | Reroute]


class JudgedCandidates:
    """The candidates that no judge refuses, in the order in which they were named."""

    def __init__(self, x: CallRequest, ports: Ports, judges: Sequence[CandidateJudge], cooldowns: Cooldowns) -> None:
        self._x = x
        self._ports = ports
        self._judges = judges
        self._cooldowns = cooldowns
        self._judged_names: set[str] = set()
        self._by_name: dict[str, JudgedCandidate] = {}
        self.refused: Refuse | None = None
        #: the deployments of aliases among the candidates, by `Candidate.name`
        self.deployments: dict[str, Deployment] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def add(self, candidates: Iterable[Candidate], limit: int | None = None) -> None:
        """Add the candidates that may answer: all of them, or the first `limit`. If a rule reroutes a candidate, the
        rule's target replaces it and is judged too."""
        full_size = None if limit is None else len(self._by_name) + limit
        for candidate in candidates:
            name = candidate.name
            if name in self._judged_names:
                continue
            self._judged_names.add(name)
            verdict = judged(self._x, candidate, self._ports, self._judges)
            place = placed(self._x, candidate, self._ports, self._judges, verdict)
            if isinstance(place, Refuse):
                self.refused = self.refused or place
            else:
                self._by_name.setdefault(name if place.candidate is candidate else place.candidate.name, place)
            if len(self._by_name) == full_size:
                return

    def add_deployments(self, alias: Alias, order: Callable[[list[Deployment]], list[Deployment]]) -> None:
        """Add those deployments of the alias that may answer, in the order that `order` returns."""
        admitted: dict[str, JudgedCandidate] = {}
        for deployment in alias.live:
            name, candidate = deployment.name, deployment.candidate
            if name in self._judged_names:
                continue
            self._judged_names.add(name)
            verdict = judged(self._x, candidate, self._ports, self._judges)
            place = placed(self._x, candidate, self._ports, self._judges, verdict)
            if isinstance(place, Refuse):
                self.refused = self.refused or place
            else:
                admitted[name] = place
                if place.candidate is candidate:
                    self.deployments[name] = deployment
        for deployment in order([deployment for deployment in alias.live if deployment.name in admitted]):
            place = admitted[deployment.name]
            self._by_name.setdefault(place.candidate.name, place)

    def in_order(self) -> list[JudgedCandidate]:
        """Return the candidates, those of healthy providers first, and among these the ones without a cooldown.
        Candidates of unhealthy providers remain as a last resort, because this request may show that their provider is
        healthy again."""
        places = list(self._by_name.values())
        if len(places) > 1:
            places.sort(key=self._sort_key)
        return places

    def _sort_key(self, place: JudgedCandidate) -> tuple[bool, bool]:
        tenant_id, candidate = self._x.identified.policy.tenant_id, place.candidate
        is_healthy = self._ports.switches.healthy(tenant_id, candidate.provider.id)
        if not self._cooldowns:
            return not is_healthy, False
        return not is_healthy, self._cooldowns.is_cooling(CircuitKey.of(tenant_id, candidate))


def usable(
    x: CallRequest, ports: Ports, judges: Sequence[CandidateJudge], candidates: Iterable[Candidate]
) -> list[str]:
    """Return the names of those candidates that no judge refuses."""
    return [candidate.name for candidate in candidates if not isinstance(judged(x, candidate, ports, judges), Refuse)]


def placed(
    x: CallRequest,
    candidate: Candidate,
    ports: Ports,
    judges: Sequence[CandidateJudge],
    verdict: Refuse | Reroute | Hold | None,
) -> JudgedCandidate | Refuse:
    """Return the candidate with its `verdict`, or the candidate that rules reroute the call to. Returns a refusal if
    that candidate is refused."""
    rerouted: set[str] = set()
    while isinstance(verdict, Reroute):
        rerouted.add(candidate.name)
        candidate = verdict.candidate
        if candidate.name in rerouted:
            return Refuse(verdict.circle)
        verdict = judged(x, candidate, ports, judges)
    return verdict if isinstance(verdict, Refuse) else JudgedCandidate(candidate, verdict)


def judged(
    x: CallRequest, candidate: Candidate, ports: Ports, judges: Sequence[CandidateJudge]
) -> Refuse | Reroute | Hold | None:
    hold: Hold | None = None
    for judge in judges:
        verdict = judge(x, candidate, ports)
        if verdict is ALLOW:
            # The usual case. A chain of eight candidates has about 30 verdicts.
            continue
        if isinstance(verdict, Refuse | Reroute):
            return verdict
        if isinstance(verdict, Hold):
            hold = hold or verdict
    return hold
