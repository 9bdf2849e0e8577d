"""The models that a simulation considered, and why each would answer or not."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from gatehouse.engine.exchange import CallRequest, NotRouted, Routed, RoutingNeeds
from gatehouse.engine.money.estimate import estimate, routing_needs
from gatehouse.engine.ports import Ports
from gatehouse.engine.routing.chain import Chooser
from gatehouse.engine.stages.candidates import route
from gatehouse.engine.stages.candidates.route import AUTO
from gatehouse.engine.verdict import Hold, Refuse, Reroute
from gatehouse.platform.routing.cost_routing.schemas import ShownCandidate
from gatehouse.policy.catalog import Candidate, ModelFilters
from gatehouse.policy.routing import CAPABILITY_BITS, Option, RoutingPolicy, excluding_filters

#: Maximum number of candidates that are shown. Policy rules are evaluated for each of them.
MAX_CANDIDATES: Final = 100


@dataclass(frozen=True, kw_only=True)
class Considered:
    """The models of one simulation. `options` are the active models of enabled providers, by name."""

    chooser: Chooser
    ports: Ports
    call_request: CallRequest
    policy: RoutingPolicy
    filters: ModelFilters
    options: Mapping[str, Option]
    routed: Routed | NotRouted

    def shown(self, reason: str) -> list[ShownCandidate]:
        """Return at most `MAX_CANDIDATES` candidates: the chain, whose first is selected for `reason`, then the models
        that the policy may choose, then all others."""
        chain = self.routed.chain if isinstance(self.routed, Routed) else ()
        shown = [self._shown(candidate, "selected", reason) for candidate in chain[:1]]
        shown += [self._shown(candidate, "fallback", "answers if those before it fail") for candidate in chain[1:]]
        names = {_name(candidate) for candidate in chain}
        others = [option for name, option in self.options.items() if name not in names]
        others.sort(key=lambda option: option.name not in self._pool and option.name not in self._chain)
        for option in others[: MAX_CANDIDATES - len(shown)]:
            candidate = Candidate(option.provider, option.model)
            shown.append(self._shown(candidate, "rejected", self._objection(option, candidate)))
        return shown

    @cached_property
    def _needs(self) -> RoutingNeeds:
        return routing_needs(self.call_request)

    @cached_property
    def _pool(self) -> frozenset[str]:
        """Names of the models that pass the policy's filters."""
        return frozenset(option.name for option in self.policy.pool.options)

    @cached_property
    def _chain(self) -> frozenset[str]:
        """Names of the models in the policy's fallback chain."""
        return frozenset(option.name for option in self.policy.chain.options)

    @cached_property
    def _capable(self) -> frozenset[str]:
        """Names of the models in pool and chain that have the capabilities that the request needs."""
        pools = (self.policy.pool, self.policy.chain)
        return frozenset(option.name for pool in pools for option in pool.capable(self._needs.needs, self._needs.use))

    @cached_property
    def _named(self) -> frozenset[str]:
        """Names of the models that the request names directly or by an alias; empty for `auto`."""
        model, snapshot = self.call_request.call.model, self.call_request.identified.policy
        if (alias := snapshot.find_alias(model)) is not None:
            return frozenset(_name(deployment.candidate) for deployment in alias.live)
        named = [] if model == AUTO else route.named(snapshot, model)
        return frozenset(map(_name, named))

    def _shown(
        self, candidate: Candidate, outcome: Literal["selected", "fallback", "rejected"], reason: str
    ) -> ShownCandidate:
        medians = self.ports.latencies.medians(stream=self.call_request.call.stream)
        return ShownCandidate(
            provider=candidate.provider.id,
            model_id=candidate.model.model_id,
            credential=candidate.credential,
            outcome=outcome,
            reason=reason,
            estimated_cost_usd=estimate(candidate.model, self._needs),
            median_latency_ms=medians.get(candidate.model.id.int),
        )

    def _objection(self, option: Option, candidate: Candidate) -> str:
        """Return why the model does not answer."""
        return (
            (None if option.name in self._named else self._not_eligible(option))
            or self._judged(candidate)
            or self._above_cap(candidate)
            or self._behind(option)
        )

    def _not_eligible(self, option: Option) -> str | None:
        if option.name not in self._chain:
            if self.call_request.call.model != AUTO:
                return "the request specifies another model, and this one is not in the fallback chain"
            if self.policy.strategy == "manual_fallback":
                return "not in the fallback chain"
            if option.name not in self._pool:
                return f"excluded by the policy's filters: {', '.join(excluding_filters(option, self.filters))}"
        if self._needs.use not in option.uses | option.possible_uses:
            return f"serves only {', '.join(sorted(option.uses))}"
        if option.name in self._capable:
            return None
        missing = self._needs.needs & ~option.supports
        return f"the catalog does not list {', '.join(name for name, bit in CAPABILITY_BITS.items() if missing & bit)}"

    def _judged(self, candidate: Candidate) -> str | None:
        verdict = self.chooser.judged(self.call_request, candidate, self.ports)
        if isinstance(verdict, Refuse):
            not_allowed = isinstance(verdict.error, route.ModelNotFound)
            return "model access does not allow it" if not_allowed else verdict.error.text
        if isinstance(verdict, Reroute):
            return f"a policy rule sends the request to {_name(verdict.candidate)}"
        if isinstance(verdict, Hold):
            return "a person must approve it first, for another reason than the selected model"
        return None

    def _above_cap(self, candidate: Candidate) -> str | None:
        cap = self.policy.cap
        if cap is None or cap.action_on_exceed == "warn":
            return None
        cost = estimate(candidate.model, self._needs)
        if cost is None:
            return "has no price, so that the cost cap cannot be checked"
        return "above the cost cap" if cost > cap.max_cost_per_request_usd else None

    def _behind(self, option: Option) -> str:
        if isinstance(self.routed, NotRouted):
            return "the request is refused before"
        if self._chain and option.name not in self._chain:
            return "not the first choice, and not in the fallback chain"
        return "behind the last fallback"


def _name(candidate: Candidate) -> str:
    return f"{candidate.provider.id}/{candidate.model.model_id}"
