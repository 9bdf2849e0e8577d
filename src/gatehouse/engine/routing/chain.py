"""Which places may answer a call, in which order: every candidate judged by itself, wherever it comes from."""

import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

import msgspec

from gatehouse.engine.candidate import Candidate
from gatehouse.engine.estimate import wants
from gatehouse.engine.exchange import Asked, NotRouted, PolicyChoice, Routed, Wants
from gatehouse.engine.ports import Ports
from gatehouse.engine.routing import cap
from gatehouse.engine.routing.cap import Costs
from gatehouse.engine.routing.circuits import Circuits, Key
from gatehouse.engine.routing.strategies import BY_LATENCY, View, by_cost, in_bounds, ranked
from gatehouse.engine.stages import route
from gatehouse.engine.stages.route import AUTO, ModelNotFound
from gatehouse.engine.verdict import ALLOW, Hold, Refuse, Reroute, Verdict
from gatehouse.foundation.errors import BadRequest, Refusal
from gatehouse.policy.routing import NEEDS, Option, RoutingPolicy

#: Models that a strategy puts into a chain: more would only wait for each other's timeouts.
MOST_CHOICES: Final = 8
#: Models that names put into a chain: the longest list of names, and a bare id that many providers have.
MOST_CANDIDATES: Final = 32
#: Seconds for which a policy whose latencies are all known is not looked through again.
_BETWEEN_TRIES: Final = 1.0
#: Turns that a worker counts.
_MOST_TURNS: Final = 10_000


class NoCapableModel(BadRequest):
    """`auto` under a routing policy that has no model for this request."""

    code = "no_capable_model"

    @classmethod
    def of(cls, policy: RoutingPolicy, needs: int) -> "NoCapableModel":
        if policy.nothing_passes:
            return cls(
                f"No active model passes the filters of the routing policy {policy.name!r}: {policy.nothing_passes}."
            )
        needed = ", ".join(name for name, bit in NEEDS.items() if needs & bit) or "a model at all"
        return cls(f"No active model that the routing policy {policy.name!r} chooses from offers {needed}.")


class _Place(NamedTuple):
    """`hold`: a person has to agree to it."""

    candidate: Candidate
    hold: Hold | None


#: Judges whether a candidate may answer a call, without waiting (`pipeline.CANDIDATE`).
CandidateJudge: TypeAlias = Callable[[Asked, Candidate, Ports], Verdict | Reroute]


class _Places:
    """Candidates that nothing speaks against, in the order in which they were named."""

    def __init__(self, x: Asked, ports: Ports, judges: Sequence[CandidateJudge]) -> None:
        self._x = x
        self._ports = ports
        self._judges = judges
        self._seen: set[str] = set()
        self._found: dict[str, _Place] = {}
        self.refused: Refuse | None = None

    def __len__(self) -> int:
        return len(self._found)

    def add(self, candidates: Iterable[Candidate], enough: int | None = None) -> None:
        """All of them, or the first so many. A candidate that a rule sends elsewhere makes room for the other, which is
        judged in its turn."""
        wanted = None if enough is None else len(self._found) + enough
        for candidate in candidates:
            name = _name(candidate)
            if name in self._seen:
                continue
            self._seen.add(name)
            verdict = _judged(self._x, candidate, self._ports, self._judges)
            place = _placed(self._x, candidate, self._ports, self._judges, verdict)
            if isinstance(place, Refuse):
                self.refused = self.refused or place
            else:
                self._found.setdefault(name if place.candidate is candidate else _name(place.candidate), place)
            if len(self._found) == wanted:
                return

    def in_order(self) -> list[_Place]:
        """An unhealthy one is the last resort, not out: its health may be what this request finds out."""
        left = list(self._found.values())
        if len(left) > 1:
            tenant_id, switches = self._x.identified.policy.tenant_id, self._ports.switches
            left.sort(key=lambda place: not switches.healthy(tenant_id, place.candidate.provider.id))
        return left


class Chooser:
    """One worker's."""

    def __init__(self, circuits: Circuits, judges: Sequence[CandidateJudge]) -> None:
        self._circuits = circuits
        self._judges = judges
        #: by policy, and what requests ask of a model: whatever comes in between, each kind has its turns
        self._turns: dict[tuple[UUID, int, bool], int] = {}
        #: when policies are looked through again for models whose latency nobody knows, monotonic
        self._next_try: dict[UUID, float] = {}

    def choose(self, x: Asked, ports: Ports) -> Routed | NotRouted:
        """The candidates that nothing speaks against, healthy ones first; the first refusal if none is left.

        Nobody is asked in the middle of a call: where the first choice needs no approval, fallbacks that need one leave
        the chain; where it needs one, that is asked for before the call, and holds for fallbacks of the same rule.
        """
        policy = route.policy_of(x)
        if policy is not None:
            return self.routed(x, ports, policy)
        found = route.candidates(x)
        if isinstance(found, Refusal):
            return NotRouted(found)
        order = _order(x)
        if len(found) == 1:
            # Nearly always: nothing to put in order.
            if (verdict := _judged(x, found[0], ports, self._judges)) is None:
                return Routed(asked=x, chain=(found[0],), order=order)
            place = _placed(x, found[0], ports, self._judges, verdict)
            if isinstance(place, Refuse):
                return NotRouted(place.error)
            return Routed(asked=x, chain=(place.candidate,), order=order, hold=place.hold)
        places = _Places(x, ports, self._judges)
        places.add(found, enough=MOST_CANDIDATES)
        return _chained(x, places.in_order(), places.refused, order)

    def routed(self, x: Asked, ports: Ports, policy: RoutingPolicy, *, trial: bool = False) -> Routed | NotRouted:
        """The same under a routing policy: named models come first, then the policy's fallback chain; `auto` is the
        first choice of its strategy. A `trial` takes nobody's turn, and tells what the choice is estimated to cost."""
        choice = PolicyChoice(policy=policy)
        wanted = wants(x)
        stream, latencies = x.call.stream, ports.latencies
        away = partial(self._away, x, ports)
        view = View(latencies.medians(stream=stream), away=away, state=latencies.state(stream=stream))
        ranking: Sequence[Option] | None = None
        order: tuple[str, ...] = ()
        places = _Places(x, ports, self._judges)
        for name in (x.call.model, *x.call.fallbacks):
            if name == AUTO:
                ranking = ranking or self._ranking(x, ports, choice, view, trial=trial)
                places.add(map(_candidate, in_bounds(policy, ranking, wanted, view)), enough=1)
            elif len(named := route.named(x.identified.policy, name)) == 1:
                places.add(named)
            elif named:
                ordered = self._by_policy(x, ports, choice, view, named, trial=trial)
                if not ordered and (usable := _usable(x, ports, self._judges, named)):
                    return NotRouted(route.AmbiguousModel.of(name, policy, usable), choice)
                places.add(ordered, enough=MOST_CHOICES)
        if not places and x.call.model == AUTO and not ranking:
            return NotRouted(NoCapableModel.of(policy, wanted.needs), choice)
        # What is unknown here, or not the caller's to use, is not answered by something else unasked.
        unknown = places.refused is None or isinstance(places.refused.error, ModelNotFound)
        if places or not unknown:
            by_hand = ranking is None or policy.chain.options
            behind = policy.chain.capable(wanted.needs, wanted.embeds) if by_hand else ranking
            enough = None if by_hand else MOST_CHOICES - 1
            places.add(map(_candidate, in_bounds(policy, behind or (), wanted, view)), enough)
            order = _order(x, policy)
        left = places.in_order()
        choice.first = left[0].candidate if left else None
        if policy.cap is not None and left:
            within = self._within(x, ports, choice, left, view, trial=trial)
            if isinstance(within, Refusal):
                return NotRouted(within, choice)
            left = within
        return _chained(x, left, places.refused, order, choice)

    def _by_policy(
        self,
        x: Asked,
        ports: Ports,
        choice: PolicyChoice,
        view: View,
        named: Sequence[Candidate],
        *,
        trial: bool,
    ) -> list[Candidate]:
        """Those of the candidates that the policy may choose, in the order of its strategy. Where none of them is known
        to be capable of the request, in the order of their prices."""
        policy, wanted = choice.policy, wants(x)
        by_key = {candidate.model.id.int: candidate for candidate in named}
        ranking = self._ranking(x, ports, choice, view, trial=trial)
        in_rank = [by_key[option.key] for option in in_bounds(policy, ranking, wanted, view) if option.key in by_key]
        if in_rank:
            return in_rank
        pool = policy.chain if policy.strategy == "manual_fallback" else policy.pool
        allowed = {option.key for option in pool.options}
        return [candidate for key, candidate in by_key.items() if key in allowed]

    def _ranking(self, x: Asked, ports: Ports, choice: PolicyChoice, view: View, *, trial: bool) -> Sequence[Option]:
        policy, wanted = choice.policy, wants(x)
        if policy.strategy == "round_robin":
            view = msgspec.structs.replace(view, turn=self._turn(policy, wanted, trial=trial))
        options = ranked(policy, wanted, view)
        if trial or policy.strategy not in BY_LATENCY:
            return options
        return self._with_a_try(x, ports, policy, options, view)

    def _with_a_try(
        self, x: Asked, ports: Ports, policy: RoutingPolicy, options: Sequence[Option], view: View
    ) -> Sequence[Option]:
        """Now and then a model goes first of which nobody knows how fast it is; never one that the cost cap speaks
        against."""
        limits, now = policy.cap, ports.clock.monotonic()
        if now < self._next_try.get(policy.id, now):
            return options
        for option in options:
            if option.key in view.medians or view.away(option):
                continue
            if limits is not None and not Costs(x, limits.max_cost_per_request_usd).fits(_candidate(option)):
                continue
            if ports.latencies.may_try(option.model.id):
                return [option, *(other for other in options if other is not option)]
        if len(self._next_try) >= _MOST_TURNS:
            self._next_try.clear()
        self._next_try[policy.id] = now + _BETWEEN_TRIES
        return options

    def _away(self, x: Asked, ports: Ports, option: Option) -> bool:
        tenant_id, provider_id = x.identified.policy.tenant_id, option.provider.id
        if not ports.switches.healthy(tenant_id, provider_id):
            return True
        return bool(self._circuits) and self._circuits.is_open(Key(tenant_id, provider_id, option.model.model_id))

    def _within(
        self, x: Asked, ports: Ports, choice: PolicyChoice, left: list[_Place], view: View, *, trial: bool
    ) -> list[_Place] | Refusal:
        """What is left under the cost cap."""
        policy, wanted = choice.policy, wants(x)
        limits = policy.cap
        assert limits is not None
        limit, first = limits.max_cost_per_request_usd, left[0].candidate
        costs = Costs(x, limit)
        choice.limit_usd = limit
        if trial or not costs.surely_fits(first):
            choice.estimated_usd = costs.told(first)
            choice.exceeds = choice.estimated_usd is None or choice.estimated_usd > limit
        if limits.action_on_exceed == "warn":
            if choice.exceeds:
                cap.note(x, policy, limits, first)
            return left
        if not choice.exceeds:
            return [left[0], *(place for place in left[1:] if costs.fits(place.candidate))]
        if limits.action_on_exceed == "block":
            return cap.refusal(policy, limits, first, choice.estimated_usd)
        cheaper = in_bounds(policy, by_cost(policy.every.capable(wanted.needs, wanted.embeds), wanted), wanted, view)
        places = _Places(x, ports, self._judges)
        places.add((each for each in map(_candidate, cheaper) if costs.fits(each)), enough=MOST_CHOICES)
        # A rule may have sent one of them to a dearer one.
        found = [place for place in places.in_order() if costs.fits(place.candidate)]
        if not found:
            return cap.refusal(policy, limits, first, choice.estimated_usd)
        cap.note(x, policy, limits, first)
        return found

    def _turn(self, policy: RoutingPolicy, wanted: Wants, *, trial: bool) -> int:
        key = (policy.id, wanted.needs, wanted.embeds)
        turn = self._turns.get(key)
        if turn is None:
            if len(self._turns) >= _MOST_TURNS:
                self._turns.clear()
            # Workers begin in different places: few requests to many of them are spread too.
            turn = random.randrange(1_000)  # noqa: S311 - spreads load
        self._turns[key] = turn if trial else turn + 1
        return turn


def _usable(x: Asked, ports: Ports, judges: Sequence[CandidateJudge], candidates: Iterable[Candidate]) -> list[str]:
    """The names of those that nothing speaks against."""
    return [
        _name(candidate) for candidate in candidates if not isinstance(_judged(x, candidate, ports, judges), Refuse)
    ]


def _order(x: Asked, policy: RoutingPolicy | None = None) -> tuple[str, ...]:
    """Of the models that are named, by the caller and by the policy's chain, as far as it does not depend on a strategy
    that works its choice out."""
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
    x: Asked,
    places: list[_Place],
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
    return Routed(asked=x, chain=chain, order=order, choice=choice, hold=hold)


def _placed(
    x: Asked,
    candidate: Candidate,
    ports: Ports,
    judges: Sequence[CandidateJudge],
    verdict: Refuse | Reroute | Hold | None,
) -> _Place | Refuse:
    """The candidate with its `verdict`, or the one that rules put in its place; or why neither may answer."""
    rerouted: set[str] = set()
    while isinstance(verdict, Reroute):
        rerouted.add(_name(candidate))
        candidate = verdict.candidate
        if _name(candidate) in rerouted:
            return Refuse(verdict.circle)
        verdict = _judged(x, candidate, ports, judges)
    return verdict if isinstance(verdict, Refuse) else _Place(candidate, verdict)


def _judged(
    x: Asked, candidate: Candidate, ports: Ports, judges: Sequence[CandidateJudge]
) -> Refuse | Reroute | Hold | None:
    hold: Hold | None = None
    for judge in judges:
        verdict = judge(x, candidate, ports)
        if verdict is ALLOW:
            # Nearly always, and a chain of eight is judged thirty times.
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
