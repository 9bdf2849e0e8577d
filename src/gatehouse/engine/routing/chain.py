"""Chooses the candidates that may answer a call, and their order. Every candidate is judged separately, whether a name,
a strategy or a rule selected it."""

import random
from collections.abc import Sequence
from functools import partial
from typing import Final
from uuid import UUID

import msgspec
import structlog

from gatehouse.engine.conversation.dialects import TRAITS
from gatehouse.engine.exchange import CallRequest, NotRouted, PolicyChoice, Routed, RoutingNeeds
from gatehouse.engine.money.estimate import routing_needs
from gatehouse.engine.ports import Ports
from gatehouse.engine.routing import cap
from gatehouse.engine.routing.attempts import Attempts
from gatehouse.engine.routing.cap import Costs
from gatehouse.engine.routing.circuits import CircuitKey
from gatehouse.engine.routing.deployments.affinity import conversation_key
from gatehouse.engine.routing.deployments.load import AliasUse
from gatehouse.engine.routing.deployments.order import OrderView, ordered
from gatehouse.engine.routing.judging import (
    CandidateJudge,
    JudgedCandidate,
    JudgedCandidates,
    judged,
    placed,
    usable,
)
from gatehouse.engine.routing.strategies import BY_LATENCY, StrategyView, by_cost, in_bounds, ranked
from gatehouse.engine.stages.candidates import route
from gatehouse.engine.stages.candidates.route import AUTO, ModelNotFound
from gatehouse.engine.verdict import Hold, Refuse, Reroute
from gatehouse.foundation.errors import BadRequest, Internal, Refusal
from gatehouse.policy.aliases import Alias, Deployment
from gatehouse.policy.catalog import Candidate
from gatehouse.policy.routing import CAPABILITY_BITS, ModelUse, Option, RoutingPolicy

log = structlog.get_logger(__name__)

#: Maximum number of models that a strategy adds to a chain. With more models, only the sum of their timeouts would
#: grow.
MAX_CHOICES: Final = 8
#: Maximum number of models that names add to a chain, because many providers can have the same model id. If one of the
#: names is a model alias, the limit applies to each name.
MAX_CANDIDATES: Final = 32
#: Interval at which a policy whose latencies are all known is searched again for models of unknown latency.
_TRIAL_SEARCH_INTERVAL_SECONDS: Final = 1.0
#: Maximum number of policies for which a worker keeps counters.
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


class Chooser:
    """The choice of candidates by one worker."""

    def __init__(self, attempts: Attempts, judges: Sequence[CandidateJudge]) -> None:
        self._circuits = attempts.circuits
        self._cooldowns = attempts.cooldowns
        self._credentials = attempts.credentials
        self._loads = attempts.loads
        self._judges = judges
        #: round-robin counters by policy and required capabilities, so that requests of other kinds do not interfere
        self._turns: dict[tuple[UUID, int, ModelUse], int] = {}
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
            try:
                return self.routed(x, ports, policy)
            except Exception:
                log.exception("routing.fault", request_id=x.identified.received.request_id)
                # The record names the policy.
                return NotRouted(Internal(), PolicyChoice(policy, None))
        aliases = x.identified.policy.aliases
        if aliases and (x.call.model in aliases or not aliases.keys().isdisjoint(x.call.fallbacks)):
            return self._by_names(x, ports)
        candidates = route.candidates(x)
        if isinstance(candidates, Refusal):
            return NotRouted(candidates)
        order = _order(x) if x.call.fallbacks else ()
        if len(candidates) == 1:
            # The usual case, in which no order must be computed.
            if (verdict := judged(x, candidates[0], ports, self._judges)) is None:
                return Routed(call_request=x, chain=(candidates[0],), order=order)
            place = placed(x, candidates[0], ports, self._judges, verdict)
            if isinstance(place, Refuse):
                return NotRouted(place.error)
            return Routed(call_request=x, chain=(place.candidate,), order=order, hold=place.hold)
        places = JudgedCandidates(x, ports, self._judges, self._cooldowns)
        places.add(candidates, limit=MAX_CANDIDATES)
        return _chained(x, places.in_order(), places.refused, order)

    def routed(self, x: CallRequest, ports: Ports, policy: RoutingPolicy, *, trial: bool = False) -> Routed | NotRouted:
        """Choose under a routing policy. Named models come first, then the policy's fallback chain. The name `auto`
        stands for the first choice of the policy's strategy. A `trial` does not advance the round-robin counter."""
        requirements = routing_needs(x)
        stream, latencies = x.call.stream, ports.latencies
        is_unavailable = partial(self._is_unavailable, x, ports)
        view = StrategyView(
            latencies.medians(stream=stream), is_unavailable=is_unavailable, state=latencies.state(stream=stream)
        )
        ranking: Sequence[Option] | None = None
        order: tuple[str, ...] = ()
        places = JudgedCandidates(x, ports, self._judges, self._cooldowns)
        for name in (x.call.model, *x.call.fallbacks):
            if name == AUTO:
                ranking = ranking or self._ranking(x, ports, policy, view, trial=trial)
                places.add(map(_candidate, in_bounds(policy, ranking, requirements, view)), limit=1)
            elif (
                refused := self._add_named(places, name, x=x, ports=ports, policy=policy, view=view, trial=trial)
            ) is not None:
                return refused
        if not places and x.call.model == AUTO and not ranking:
            return NotRouted(NoCapableModel.of(policy, requirements.needs), PolicyChoice(policy, None))
        # A named model that is unknown, or that the caller may not use, is not replaced by another model.
        unknown = places.refused is None or isinstance(places.refused.error, ModelNotFound)
        if places or not unknown:
            has_chain = ranking is None or policy.chain.options
            fallbacks = policy.chain.capable(requirements.needs, requirements.use) if has_chain else ranking
            limit = None if has_chain else MAX_CHOICES - 1
            places.add(map(_candidate, in_bounds(policy, fallbacks or (), requirements, view)), limit)
            order = _order(x, policy)
        remaining = places.in_order()
        choice = PolicyChoice(policy, remaining[0].candidate if remaining else None)
        if policy.cap is not None and remaining:
            choice, within = self._within_cap(x, ports, choice, places, view, trial=trial)
            if isinstance(within, Refusal):
                return NotRouted(within, choice)
            remaining = within
        return _with_deployments(_chained(x, remaining, places.refused, order, choice), places)

    def judged(self, x: CallRequest, candidate: Candidate, ports: Ports) -> Refuse | Reroute | Hold | None:
        """Return the objection of the judges to the candidate, or None."""
        return judged(x, candidate, ports, self._judges)

    def _add_named(
        self,
        places: JudgedCandidates,
        name: str,
        *,
        x: CallRequest,
        ports: Ports,
        policy: RoutingPolicy,
        view: StrategyView,
        trial: bool,
    ) -> NotRouted | None:
        """Add the deployments of the model alias with this name, or the catalog entries with this name. Return a
        refusal if several providers have the model and the policy chooses none of them."""
        snapshot = x.identified.policy
        if (alias := snapshot.find_alias(name)) is not None:
            places.add_deployments(alias, partial(self._ordered, x, ports, alias, trial=trial))
        elif len(named := route.named(snapshot, name)) == 1:
            places.add(named)
        elif named:
            ordered_entries = self._by_policy(x, ports, policy, view, named, trial=trial)
            if not ordered_entries and (usable_names := usable(x, ports, self._judges, named)):
                error = route.AmbiguousModel.of(name, policy, usable_names)
                return NotRouted(error, PolicyChoice(policy, None))
            places.add(ordered_entries, limit=MAX_CHOICES)
        return None

    def _by_names(self, x: CallRequest, ports: Ports) -> Routed | NotRouted:
        """Choose without a routing policy, if a model alias is among the names of the call."""
        snapshot = x.identified.policy
        places = JudgedCandidates(x, ports, self._judges, self._cooldowns)
        for name in (x.call.model, *x.call.fallbacks):
            if (alias := snapshot.find_alias(name)) is not None:
                places.add_deployments(alias, partial(self._ordered, x, ports, alias))
            else:
                places.add(route.named(snapshot, name), limit=MAX_CANDIDATES)
        return _with_deployments(_chained(x, places.in_order(), places.refused, _order(x)), places)

    def _ordered(
        self, x: CallRequest, ports: Ports, alias: Alias, deployments: list[Deployment], *, trial: bool = False
    ) -> list[Deployment]:
        """Return the alias's deployments, the first choice first. A `trial` changes no state."""
        tokens = 0
        if alias.counts_tokens:
            requirements = routing_needs(x)
            tokens = requirements.input_tokens + requirements.output_tokens
        use: AliasUse = "named" if alias.name == x.call.model else "fallback"
        if TRAITS[x.call.dialect].is_free:
            use = "token_count"
        view = OrderView(
            load=self._loads.of,
            rests=lambda deployment: self._rests(x, ports, deployment.candidate),
            is_full=lambda deployment: self._loads.is_full(deployment, tokens),
            medians=ports.latencies.medians(stream=x.call.stream),
            may_try=lambda deployment: ports.latencies.may_try(deployment.candidate.model.id),
            use=use,
            conversation=conversation_key(x) if alias.sticky else None,
            trial=trial,
        )
        return ordered(alias, deployments, view)

    def _rests(self, x: CallRequest, ports: Ports, candidate: Candidate) -> bool:
        """Return whether a deployment's candidate, or the credential that it names, is unavailable."""
        return self._is_unavailable(x, ports, candidate) or not self._credentials.is_available(
            x.identified.policy.tenant_id, candidate
        )

    def _by_policy(
        self,
        x: CallRequest,
        ports: Ports,
        policy: RoutingPolicy,
        view: StrategyView,
        named: Sequence[Candidate],
        *,
        trial: bool,
    ) -> list[Candidate]:
        """Return the candidates that the policy may choose, in the order of its strategy. If none of them is known to
        be capable of the request, they are in the order of their prices."""
        requirements = routing_needs(x)
        by_key = {candidate.model.id.int: candidate for candidate in named}
        ranking = self._ranking(x, ports, policy, view, trial=trial)
        in_rank = [
            by_key[option.key] for option in in_bounds(policy, ranking, requirements, view) if option.key in by_key
        ]
        if in_rank:
            return in_rank
        pool = policy.chain if policy.strategy == "manual_fallback" else policy.pool
        allowed = {option.key for option in pool.options}
        return [candidate for key, candidate in by_key.items() if key in allowed]

    def _ranking(
        self, x: CallRequest, ports: Ports, policy: RoutingPolicy, view: StrategyView, *, trial: bool
    ) -> Sequence[Option]:
        requirements = routing_needs(x)
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
        that exceeds the cost cap is never moved to the first place."""
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

    def _is_unavailable(self, x: CallRequest, ports: Ports, option: Option | Candidate) -> bool:
        """Return whether the model's provider is unhealthy, its circuit is open, or its rate limit is exhausted."""
        tenant_id, provider_id = x.identified.policy.tenant_id, option.provider.id
        if not ports.switches.healthy(tenant_id, provider_id):
            return True
        if not self._circuits and not self._cooldowns:
            return False
        credential = option.credential if isinstance(option, Candidate) else None
        key = CircuitKey(tenant_id, provider_id, option.model.model_id, credential)
        return self._circuits.is_open(key) or self._cooldowns.is_cooling(key)

    def _within_cap(
        self,
        x: CallRequest,
        ports: Ports,
        choice: PolicyChoice,
        judged: JudgedCandidates,
        view: StrategyView,
        *,
        trial: bool,
    ) -> tuple[PolicyChoice, list[JudgedCandidate] | Refusal]:
        """Return the choice, and the places whose cost is within the cap, or the cap's refusal. If the first one is a
        deployment of an alias, another deployment of the alias can replace it."""
        policy, requirements = choice.policy, routing_needs(x)
        limits = policy.cap
        assert limits is not None
        places, deployments = judged.in_order(), judged.deployments
        limit, first = limits.max_cost_per_request_usd, places[0].candidate
        costs = Costs(x, limit)
        exceeds = not costs.fits(first)
        if limits.action_on_exceed == "warn":
            if exceeds:
                cap.note(x, policy, limits, first)
            return choice, places
        if not exceeds:
            return choice, [places[0], *(place for place in places[1:] if costs.fits(place.candidate))]
        if first.name in deployments:
            fitting = [place for place in places if costs.fits(place.candidate)]
            alias = deployments[first.name].alias
            names = {name for name, deployment in deployments.items() if deployment.alias == alias}
            if any(place.candidate.name in names for place in fitting):
                return PolicyChoice(policy, fitting[0].candidate), fitting
        if limits.action_on_exceed == "block":
            return choice, cap.refusal(policy, limits, first, costs.estimated(first))
        cheaper = in_bounds(
            policy,
            by_cost(policy.every.capable(requirements.needs, requirements.use), requirements),
            requirements,
            view,
        )
        cheaper_places = JudgedCandidates(x, ports, self._judges, self._cooldowns)
        cheaper_places.add(
            (candidate for candidate in map(_candidate, cheaper) if costs.fits(candidate)), limit=MAX_CHOICES
        )
        # A rule may have rerouted one of these candidates to a more expensive one.
        fitting = [place for place in cheaper_places.in_order() if costs.fits(place.candidate)]
        if not fitting:
            return choice, cap.refusal(policy, limits, first, costs.estimated(first))
        cap.note(x, policy, limits, first)
        return choice, fitting

    def _turn(self, policy: RoutingPolicy, requirements: RoutingNeeds, *, trial: bool) -> int:
        key = (policy.id, requirements.needs, requirements.use)
        turn = self._turns.get(key)
        if turn is None:
            if len(self._turns) >= _MAX_COUNTED_POLICIES:
                self._turns.clear()
            # Each worker starts at a random turn, so that a small number of requests to many workers is spread too.
            turn = random.randrange(1_000)  # noqa: S311 - spreads load
        self._turns[key] = turn if trial else turn + 1
        return turn


def _order(x: CallRequest, policy: RoutingPolicy | None = None) -> tuple[str, ...]:
    """Return the names of the models in the order in which the caller and the policy's chain name them. The order ends
    where a strategy or a model alias determines the choice."""
    chain = () if policy is None else policy.chain.options
    if not x.call.fallbacks and not chain:
        return ()
    names: list[str] = []
    for name in (x.call.model, *x.call.fallbacks):
        if x.identified.policy.find_alias(name) is not None:
            return tuple(dict.fromkeys(names))
        if name == AUTO and policy is not None:
            if policy.strategy != "manual_fallback":
                return tuple(dict.fromkeys(names))
            names += [option.name for option in chain]
        else:
            names += [candidate.name for candidate in route.named(x.identified.policy, name)] or [name]
    return tuple(dict.fromkeys((*names, *(option.name for option in chain))))


def _chained(
    x: CallRequest,
    places: list[JudgedCandidate],
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


def _with_deployments(routed: Routed | NotRouted, places: JudgedCandidates) -> Routed | NotRouted:
    """Return the result with the deployments among the candidates."""
    if places.deployments and isinstance(routed, Routed):
        x = routed.call_request
        alias = x.identified.policy.find_alias(x.call.model)
        return msgspec.structs.replace(routed, alias=alias, deployments=places.deployments)
    return routed


def _candidate(option: Option) -> Candidate:
    return Candidate(option.provider, option.model)
