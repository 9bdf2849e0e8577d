"""Chooses the candidates that may answer a call, and their order. Every candidate is judged separately, whether a name,
a strategy or a rule selected it."""

import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

import msgspec

from gatehouse.engine.exchange import CallRequest, NotRouted, PolicyChoice, Routed, RoutingNeeds
from gatehouse.engine.money.estimate import routing_needs
from gatehouse.engine.ports import Ports
from gatehouse.engine.routing import cap
from gatehouse.engine.routing.cap import Costs
from gatehouse.engine.routing.circuits import CircuitKey, Circuits
from gatehouse.engine.routing.cooldowns import Cooldowns
from gatehouse.engine.routing.strategies import BY_LATENCY, StrategyView, by_cost, in_bounds, ranked
from gatehouse.engine.stages.candidates import route
from gatehouse.engine.stages.candidates.route import AUTO, ModelNotFound
from gatehouse.engine.verdict import ALLOW, Hold, Refuse, Reroute, Verdict
from gatehouse.foundation.errors import BadRequest, Refusal
from gatehouse.policy.records import Candidate
from gatehouse.policy.routing import CAPABILITY_BITS, Option, RoutingPolicy

#: Most models that a strategy adds to a chain. With more models, only the sum of their timeouts would grow.
MAX_CHOICES: Final = 8
#: Most models that names add to a chain, from the longest list of names or from an id that many providers share.
MAX_CANDIDATES: Final = 32
#: Interval at which a policy whose latencies are all known is searched again for models of unknown latency.
_TRIAL_SEARCH_INTERVAL_SECONDS: Final = 1.0
#: Most policies for which a worker keeps counters.
_MAX_COUNTED_POLICIES: Final = 10_000


class NoCapableModel(BadRequest):
    """The call named `auto`, and its routing policy has no model for the request: 400."""

    code = "no_capable_model"

    @classmethod
    def of(cls, policy: RoutingPolicy, needs: int) -> "NoCapableModel":
        if policy.nothing_passes:
            return cls(
                f"No active model passes the filters of the routing policy {policy.name!r}: {policy.nothing_passes}."
            )
        needed = ", ".join(name for name, bit in CAPABILITY_BITS.items() if needs & bit) or "this operation"
        return cls(f"No active model that the routing policy {policy.name!r} chooses from offers {needed}.")


class _JudgedCandidate(NamedTuple):
    """A candidate that may answer. If `hold` is set, a person must approve it first."""

    candidate: Candidate
    hold: Hold | None


#: Decides whether a candidate may answer a call, without waiting (`pipeline.CANDIDATE`).
CandidateJudge: TypeAlias = Callable[[CallRequest, Candidate, Ports], Verdict | Reroute]


class _JudgedCandidates:
    """The candidates that no judge refuses, in the order in which they were named."""

    def __init__(self, x: CallRequest, ports: Ports, judges: Sequence[CandidateJudge], cooldowns: Cooldowns) -> None:
        self._x = x
        self._ports = ports
        self._judges = judges
        self._cooldowns = cooldowns
        self._judged_names: set[str] = set()
        self._by_name: dict[str, _JudgedCandidate] = {}
        self.refused: Refuse | None = None

    def __len__(self) -> int:
        return len(self._by_name)

    def add(self, candidates: Iterable[Candidate], limit: int | None = None) -> None:
        """Add the candidates that may answer: all of them, or the first `limit`. If a rule reroutes a candidate, the
        rule's target replaces it and is judged too."""
        full_size = None if limit is None else len(self._by_name) + limit
        for candidate in candidates:
            name = _name(candidate)
            if name in self._judged_names:
                continue
            self._judged_names.add(name)
            verdict = _judged(self._x, candidate, self._ports, self._judges)
            place = _placed(self._x, candidate, self._ports, self._judges, verdict)
            if isinstance(place, Refuse):
                self.refused = self.refused or place
            else:
                self._by_name.setdefault(name if place.candidate is candidate else _name(place.candidate), place)
            if len(self._by_name) == full_size:
                return

    def in_order(self) -> list[_JudgedCandidate]:
        """Return the candidates, those of healthy providers first, and among these the ones without a cooldown.
        Candidates of unhealthy providers remain as a last resort, because this request may show that their provider is
        healthy again."""
        places = list(self._by_name.values())
        if len(places) > 1:
            places.sort(key=self._sort_key)
        return places

    def _sort_key(self, place: _JudgedCandidate) -> tuple[bool, bool]:
        tenant_id, candidate = self._x.identified.policy.tenant_id, place.candidate
        is_healthy = self._ports.switches.healthy(tenant_id, candidate.provider.id)
        if not self._cooldowns:
            return not is_healthy, False
        key = CircuitKey(tenant_id, candidate.provider.id, candidate.model.model_id)
        return not is_healthy, self._cooldowns.is_cooling(key)


class Chooser:
    """The choice of candidates by one worker."""

    def __init__(self, circuits: Circuits, cooldowns: Cooldowns, judges: Sequence[CandidateJudge]) -> None:
        self._circuits = circuits
        self._cooldowns = cooldowns
        self._judges = judges
        #: round-robin counters by policy and required capabilities, so that requests of other kinds do not interfere
        self._turns: dict[tuple[UUID, int, bool], int] = {}
        #: monotonic time at which a policy is next searched for models of unknown latency
        self._next_trial_search: dict[UUID, float] = {}

    def choose(self, x: CallRequest, ports: Ports) -> Routed | NotRouted:
        """Return the candidates that no judge refuses, those of healthy providers first, or the first refusal if no
        candidate is left.

        No approval is requested during a call. If the first choice needs no approval, fallbacks that need one are
        removed from the chain. If the first choice needs one, the approval is requested before the call, and also
        covers fallbacks that the same rule holds.
        """
        policy = route.policy_of(x)
        if policy is not None:
            return self.routed(x, ports, policy)
        candidates = route.candidates(x)
        if isinstance(candidates, Refusal):
            return NotRouted(candidates)
        order = _order(x)
        if len(candidates) == 1:
            # The usual case, in which no order must be computed.
            if (verdict := _judged(x, candidates[0], ports, self._judges)) is None:
                return Routed(call_request=x, chain=(candidates[0],), order=order)
            place = _placed(x, candidates[0], ports, self._judges, verdict)
            if isinstance(place, Refuse):
                return NotRouted(place.error)
            return Routed(call_request=x, chain=(place.candidate,), order=order, hold=place.hold)
        places = _JudgedCandidates(x, ports, self._judges, self._cooldowns)
        places.add(candidates, limit=MAX_CANDIDATES)
        return _chained(x, places.in_order(), places.refused, order)

    def routed(self, x: CallRequest, ports: Ports, policy: RoutingPolicy, *, trial: bool = False) -> Routed | NotRouted:
        """Choose under a routing policy. Named models come first, then the policy's fallback chain. The name `auto`
        stands for the first choice of the policy's strategy. A `trial` does not advance the round-robin counter, and
        always estimates the cost of the choice."""
        choice = PolicyChoice(policy=policy)
        requirements = routing_needs(x)
        stream, latencies = x.call.stream, ports.latencies
        is_unavailable = partial(self._is_unavailable, x, ports)
        view = StrategyView(
            latencies.medians(stream=stream), is_unavailable=is_unavailable, state=latencies.state(stream=stream)
        )
        ranking: Sequence[Option] | None = None
        order: tuple[str, ...] = ()
        places = _JudgedCandidates(x, ports, self._judges, self._cooldowns)
        for name in (x.call.model, *x.call.fallbacks):
            if name == AUTO:
                ranking = ranking or self._ranking(x, ports, choice, view, trial=trial)
                places.add(map(_candidate, in_bounds(policy, ranking, requirements, view)), limit=1)
            elif len(named := route.named(x.identified.policy, name)) == 1:
                places.add(named)
            elif named:
                ordered = self._by_policy(x, ports, choice, view, named, trial=trial)
                if not ordered and (usable := _usable(x, ports, self._judges, named)):
                    return NotRouted(route.AmbiguousModel.of(name, policy, usable), choice)
                places.add(ordered, limit=MAX_CHOICES)
        if not places and x.call.model == AUTO and not ranking:
            return NotRouted(NoCapableModel.of(policy, requirements.needs), choice)
        # A named model that is unknown, or that the caller may not use, is not replaced by another model.
        unknown = places.refused is None or isinstance(places.refused.error, ModelNotFound)
        if places or not unknown:
            has_chain = ranking is None or policy.chain.options
            fallbacks = policy.chain.capable(requirements.needs, requirements.embeds) if has_chain else ranking
            limit = None if has_chain else MAX_CHOICES - 1
            places.add(map(_candidate, in_bounds(policy, fallbacks or (), requirements, view)), limit)
            order = _order(x, policy)
        remaining = places.in_order()
        choice.first = remaining[0].candidate if remaining else None
        if policy.cap is not None and remaining:
            within = self._within_cap(x, ports, choice, remaining, view, trial=trial)
            if isinstance(within, Refusal):
                return NotRouted(within, choice)
            remaining = within
        return _chained(x, remaining, places.refused, order, choice)

    def judged(self, x: CallRequest, candidate: Candidate, ports: Ports) -> Refuse | Reroute | Hold | None:
        """Return the objection of the judges to the candidate, or None."""
        return _judged(x, candidate, ports, self._judges)

    def _by_policy(
        self,
        x: CallRequest,
        ports: Ports,
        choice: PolicyChoice,
        view: StrategyView,
        named: Sequence[Candidate],
        *,
        trial: bool,
    ) -> list[Candidate]:
        """Return the candidates that the policy may choose, in the order of its strategy. If none of them is known to
        be capable of the request, they are in the order of their prices."""
        policy, requirements = choice.policy, routing_needs(x)
        by_key = {candidate.model.id.int: candidate for candidate in named}
        ranking = self._ranking(x, ports, choice, view, trial=trial)
        in_rank = [
            by_key[option.key] for option in in_bounds(policy, ranking, requirements, view) if option.key in by_key
        ]
        if in_rank:
            return in_rank
        pool = policy.chain if policy.strategy == "manual_fallback" else policy.pool
        allowed = {option.key for option in pool.options}
        return [candidate for key, candidate in by_key.items() if key in allowed]

    def _ranking(
        self, x: CallRequest, ports: Ports, choice: PolicyChoice, view: StrategyView, *, trial: bool
    ) -> Sequence[Option]:
        policy, requirements = choice.policy, routing_needs(x)
        if policy.strategy == "round_robin":
            view = msgspec.structs.replace(view, turn=self._turn(policy, requirements, trial=trial))
        options = ranked(policy, requirements, view)
        if trial or policy.strategy not in BY_LATENCY:
            return options
        return self._with_trial(x, ports, policy, options, view)

    def _with_trial(
        self, x: CallRequest, ports: Ports, policy: RoutingPolicy, options: Sequence[Option], view: StrategyView
    ) -> Sequence[Option]:
        """Return the options. At times, a model of unknown latency comes first so that its latency is measured. A model
        that exceeds the cost cap never does."""
        limits, now = policy.cap, ports.clock.monotonic()
        if now < self._next_trial_search.get(policy.id, now):
            return options
        for option in options:
            if option.key in view.medians or view.is_unavailable(option):
                continue
            if limits is not None and not Costs(x, limits.max_cost_per_request_usd).fits(_candidate(option)):
                continue
            if ports.latencies.may_try(option.model.id):
                return [option, *(remaining for remaining in options if remaining is not option)]
        if len(self._next_trial_search) >= _MAX_COUNTED_POLICIES:
            self._next_trial_search.clear()
        self._next_trial_search[policy.id] = now + _TRIAL_SEARCH_INTERVAL_SECONDS
        return options

    def _is_unavailable(self, x: CallRequest, ports: Ports, option: Option) -> bool:
        tenant_id, provider_id = x.identified.policy.tenant_id, option.provider.id
        if not ports.switches.healthy(tenant_id, provider_id):
            return True
        if not self._circuits and not self._cooldowns:
            return False
        key = CircuitKey(tenant_id, provider_id, option.model.model_id)
        return self._circuits.is_open(key) or self._cooldowns.is_cooling(key)

    def _within_cap(
        self,
        x: CallRequest,
        ports: Ports,
        choice: PolicyChoice,
        places: list[_JudgedCandidate],
        view: StrategyView,
        *,
        trial: bool,
    ) -> list[_JudgedCandidate] | Refusal:
        """Return the places whose cost is within the cap, or the cap's refusal."""
        policy, requirements = choice.policy, routing_needs(x)
        limits = policy.cap
        assert limits is not None
        limit, first = limits.max_cost_per_request_usd, places[0].candidate
        costs = Costs(x, limit)
        choice.limit_usd = limit
        if trial or not costs.surely_fits(first):
            choice.estimated_usd = costs.estimated(first)
            choice.exceeds = choice.estimated_usd is None or choice.estimated_usd > limit
        if limits.action_on_exceed == "warn":
            if choice.exceeds:
                cap.note(x, policy, limits, first)
            return places
        if not choice.exceeds:
            return [places[0], *(place for place in places[1:] if costs.fits(place.candidate))]
        if limits.action_on_exceed == "block":
            return cap.refusal(policy, limits, first, choice.estimated_usd)
        cheaper = in_bounds(
            policy,
            by_cost(policy.every.capable(requirements.needs, requirements.embeds), requirements),
            requirements,
            view,
        )
        cheaper_places = _JudgedCandidates(x, ports, self._judges, self._cooldowns)
        cheaper_places.add(
            (candidate for candidate in map(_candidate, cheaper) if costs.fits(candidate)), limit=MAX_CHOICES
        )
        # A rule may have rerouted one of these candidates to a more expensive one.
        fitting = [place for place in cheaper_places.in_order() if costs.fits(place.candidate)]
        if not fitting:
            return cap.refusal(policy, limits, first, choice.estimated_usd)
        cap.note(x, policy, limits, first)
        return fitting

    def _turn(self, policy: RoutingPolicy, requirements: RoutingNeeds, *, trial: bool) -> int:
        key = (policy.id, requirements.needs, requirements.embeds)
        turn = self._turns.get(key)
        if turn is None:
            if len(self._turns) >= _MAX_COUNTED_POLICIES:
                self._turns.clear()
            # Each worker starts at a random turn, so that a small number of requests to many workers is spread too.
            turn = random.randrange(1_000)  # noqa: S311 - spreads load
        self._turns[key] = turn if trial else turn + 1
        return turn


def _usable(
    x: CallRequest, ports: Ports, judges: Sequence[CandidateJudge], candidates: Iterable[Candidate]
) -> list[str]:
    """Return the names of those candidates that no judge refuses."""
    return [
        _name(candidate) for candidate in candidates if not isinstance(_judged(x, candidate, ports, judges), Refuse)
    ]


def _order(x: CallRequest, policy: RoutingPolicy | None = None) -> tuple[str, ...]:
    """Return the names of the models in the order in which the caller and the policy's chain name them. The order ends
    where a strategy computes the choice."""
    chain = () if policy is None else policy.chain.options
    if not x.call.fallbacks and not chain:
        return ()
    names: list[str] = []
    for name in (x.call.model, *x.call.fallbacks):
        if name == AUTO and policy is not None:
            if policy.strategy != "manual_fallback":
                return tuple(dict.fromkeys(names))
            names += [option.name for option in chain]
        else:
            names += [_name(candidate) for candidate in route.named(x.identified.policy, name)] or [name]
    return tuple(dict.fromkeys((*names, *(option.name for option in chain))))


def _chained(
    x: CallRequest,
    places: list[_JudgedCandidate],
    refused: Refuse | None,
    order: tuple[str, ...],
    choice: PolicyChoice | None = None,
) -> Routed | NotRouted:
    if not places:
        error = ModelNotFound.named(x.call.model) if refused is None else refused.error
        return NotRouted(error, choice)
    hold = places[0].hold
    agreed = {None, hold.ask.rule_id if hold else None}
    chain = tuple(place.candidate for place in places if (place.hold and place.hold.ask.rule_id) in agreed)
    return Routed(call_request=x, chain=chain, order=order, choice=choice, hold=hold)


def _placed(
    x: CallRequest,
    candidate: Candidate,
    ports: Ports,
    judges: Sequence[CandidateJudge],
    verdict: Refuse | Reroute | Hold | None,
) -> _JudgedCandidate | Refuse:
    """Return the candidate with its `verdict`, or the candidate that rules reroute the call to. Returns a refusal if
    that candidate is refused."""
    rerouted: set[str] = set()
    while isinstance(verdict, Reroute):
        rerouted.add(_name(candidate))
        candidate = verdict.candidate
        if _name(candidate) in rerouted:
            return Refuse(verdict.circle)
        verdict = _judged(x, candidate, ports, judges)
    return verdict if isinstance(verdict, Refuse) else _JudgedCandidate(candidate, verdict)


def _judged(
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


def _candidate(option: Option) -> Candidate:
    return Candidate(option.provider, option.model)


def _name(candidate: Candidate) -> str:
    return f"{candidate.provider.id}/{candidate.model.model_id}"
