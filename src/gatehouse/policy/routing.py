"""Routing policies of a tenant, compiled: whose they are, and which models they choose from (reference 3, Cost routing
policy).

Filters are applied here, at load time. A request adds what it needs itself (`Pool.capable`), which is worked out once
for each combination of needs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Final, Literal, TypeAlias
from uuid import UUID

import msgspec

from gatehouse.policy.records import (
    ChainEntry,
    CostCap,
    ModelFilters,
    ModelRecord,
    ProviderRecord,
    RoutingPolicyRecord,
    Strategy,
)

Capability: TypeAlias = Literal["vision", "function_calling", "json_mode", "streaming", "code_execution"]

#: What a request can need, as bits.
NEEDS: Final[Mapping[str, int]] = {
    "vision": 1, "function_calling": 2, "json_mode": 4, "streaming": 8, "code_execution": 16,
}  # fmt: skip
#: Of those, what the catalog calls otherwise.
_IN_CATALOG: Final = {"json_mode": "structured_output"}
#: The price of what has none: USD a token, finite so that no tokens of it cost nothing.
UNKNOWN: Final = 1e30
#: A window that nobody has stated is no bound.
_ANY_WINDOW: Final = 2**62


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the catalog as strategies see it. Prices are USD a token, for comparing alone: what is charged and
    capped is counted in decimals. None: unknown."""

    provider: ProviderRecord
    model: ModelRecord
    #: `provider/model-id`
    name: str
    #: the entry's id as a number, which is looked up in a third of the time
    key: int
    #: bits of `NEEDS` that the catalog says it supports, and that it says it does not
    supports: int
    lacks: int
    embeds: bool
    per_input: float | None
    per_output: float | None
    window: int
    weight: float = 1.0


class Options(tuple[Option, ...]):
    """Options, and the same in columns: with hundreds of them a strategy has no time to look into each."""

    keys: list[int]
    per_input: list[float]
    per_output: list[float]
    #: the same times the entries' weights, and their sums where all prices are known
    weighted_input: list[float]
    weighted_output: list[float]
    weighted_sums: tuple[float, float] | None
    #: what was worked out of latencies: their state then, each model's milliseconds, and the sum
    times: tuple[object, list[float], float] | None

    def __new__(cls, options: Iterable[Option]) -> "Options":
        made = super().__new__(cls, options)
        made.keys = [option.key for option in made]
        # What is dearer than anything comes last, without being asked about.
        made.per_input = [UNKNOWN if option.per_input is None else option.per_input for option in made]
        made.per_output = [UNKNOWN if option.per_output is None else option.per_output for option in made]
        made.weighted_input = [price * o.weight for price, o in zip(made.per_input, made, strict=True)]
        made.weighted_output = [price * o.weight for price, o in zip(made.per_output, made, strict=True)]
        known = UNKNOWN not in made.per_input and UNKNOWN not in made.per_output
        made.weighted_sums = (sum(made.weighted_input), sum(made.weighted_output)) if known else None
        made.times = None
        return made


class Pool:
    """Options, in an order that never changes."""

    __slots__ = ("_capable", "options")

    def __init__(self, options: Iterable[Option]) -> None:
        self.options = tuple(options)
        self._capable: dict[tuple[int, bool], Options] = {}

    def capable(self, needs: int, embeds: bool) -> Options:
        """Those that the catalog says support what is needed; where there are none, those of which it does not say that
        they do not."""
        found = self._capable.get((needs, embeds))
        if found is None:
            of_its_kind = [option for option in self.options if option.embeds is embeds]
            able = [option for option in of_its_kind if option.supports & needs == needs]
            found = Options(able or [option for option in of_its_kind if not option.lacks & needs])
            self._capable[needs, embeds] = found
        return found


class RoutingPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """`pool` is what passes the filters, in the order of the names, or under `quality_optimized` the best first: what
    the chain names in its order, then the dearest. `chain` is the fallback chain in the order of its priorities, of
    entries that there are, whatever the filters say: it was written by hand."""

    id: UUID
    name: str
    strategy: Strategy
    pool: Pool
    chain: Pool
    #: both together, for a cap that asks for the cheapest; otherwise `pool`
    every: Pool
    #: which filters leave no model, for an error's message; empty where `pool` has some
    nothing_passes: str = ""
    cap: CostCap | None = None
    latency_budget_ms: int | None = None
    cache_ttl_seconds: int | None = None


class Routing:
    """A tenant's enabled policies. `of` costs nothing where there are none."""

    __slots__ = ("_by_group", "_default", "_order")

    def __init__(self, policies: Sequence[tuple[RoutingPolicyRecord, RoutingPolicy]] = ()) -> None:
        self._by_group: dict[UUID, RoutingPolicy] = {}
        self._default: RoutingPolicy | None = None
        #: which of several counts: the one that was made first
        self._order = {policy.id: number for number, (_, policy) in enumerate(policies)}
        for record, policy in policies:
            for group in record.group_ids:
                self._by_group.setdefault(group, policy)
            if not record.group_ids and self._default is None:
                self._default = policy

    def of(self, groups: Sequence[UUID]) -> RoutingPolicy | None:
        """The policy of a caller who is in these groups: of their policies the one that was made first, else the
        organization's default."""
        if self._by_group:
            found = [policy for group in groups if (policy := self._by_group.get(group)) is not None]
            if found:
                return found[0] if len(found) == 1 else min(found, key=lambda policy: self._order[policy.id])
        return self._default


def compile_routing(
    records: Iterable[RoutingPolicyRecord], providers: Mapping[str, ProviderRecord], models: Iterable[ModelRecord]
) -> Routing:
    """Records come in the order in which the policies were made. Nothing in them is a fault here: what a chain names
    and the catalog lacks is left out until it is back."""
    wanted = list(records)
    if not wanted:
        return Routing()
    options = options_of(providers, models)
    pools: dict[object, Pool] = {}
    return Routing([(record, compile_routing_policy(record, options, pools)) for record in wanted])


def options_of(providers: Mapping[str, ProviderRecord], models: Iterable[ModelRecord]) -> dict[str, Option]:
    """The active entries of enabled providers, by name and in the order of their names."""
    found = {}
    for model in models:
        provider = providers.get(model.provider)
        if model.is_active and provider is not None and provider.enabled:
            option = _option(provider, model)
            found[option.name] = option
    return dict(sorted(found.items()))


def compile_routing_policy(
    record: RoutingPolicyRecord, options: Mapping[str, Option], pools: dict[object, Pool] | None = None
) -> RoutingPolicy:
    """`pools` are those of other policies over the same options: what chooses from the same models in the same way has
    the same pool, for hundreds of policies over thousands of models are many."""
    pools = {} if pools is None else pools
    in_order = tuple(dict.fromkeys(map(_name, sorted(record.fallback_chain, key=lambda entry: entry.priority))))
    chain = [options[name] for name in in_order if name in options]
    weights = _weights(record) if record.strategy == "balanced" else {}
    best_first = in_order if record.strategy == "quality_optimized" else None
    key = (record.model_filters, tuple(weights.items()), best_first)
    pool = pools.get(key)
    if pool is None:
        found = [_weighted(each, weights) for each in options.values() if _passes(each, record.model_filters)]
        if best_first is not None:
            found.sort(key=partial(_quality, best_first))
        pool = pools[key] = Pool(found)
    every = pool
    if record.cost_cap is not None and record.cost_cap.action_on_exceed == "use_cheapest":
        every = Pool({option.name: option for option in (*pool.options, *chain)}.values())
    return RoutingPolicy(
        id=record.id,
        name=record.name,
        strategy=record.strategy,
        pool=pool,
        chain=Pool(chain),
        every=every,
        nothing_passes="" if pool.options else _obstacles(options.values(), record.model_filters),
        cap=record.cost_cap,
        latency_budget_ms=record.latency_budget_ms,
        cache_ttl_seconds=record.cache_ttl_seconds,
    )


def bits(capabilities: Iterable[str]) -> int:
    """Of names in `NEEDS`."""
    needed = 0
    for name in capabilities:
        needed |= NEEDS[name]
    return needed


def _option(provider: ProviderRecord, model: ModelRecord) -> Option:
    told = {name: model.capabilities.get(_IN_CATALOG.get(name, name)) for name in NEEDS}
    return Option(
        provider=provider,
        model=model,
        name=f"{model.provider}/{model.model_id}",
        key=model.id.int,
        supports=bits(name for name, said in told.items() if said),
        lacks=bits(name for name, said in told.items() if said is False),
        embeds=bool(model.capabilities.get("embeddings")),
        per_input=_float(model.cost_per_input_token),
        per_output=_float(model.cost_per_output_token),
        window=model.context_window or _ANY_WINDOW,
    )


def _passes(option: Option, filters: ModelFilters) -> bool:
    return not any(excludes(option, filters) for excludes in _EXCLUDES.values())


def _too_small(option: Option, filters: ModelFilters) -> bool:
    least = filters.min_context_window
    return least is not None and (option.model.context_window or 0) < least


def _not_capable(option: Option, filters: ModelFilters) -> bool:
    needed = bits(filters.required_capabilities)
    return option.supports & needed != needed


def _named_as_excluded(option: Option, filters: ModelFilters) -> bool:
    return not filters.excluded_models.isdisjoint({option.name, option.model.model_id})


def _of_another_provider(option: Option, filters: ModelFilters) -> bool:
    return bool(filters.included_providers) and option.model.provider not in filters.included_providers


def _too_dear(option: Option, filters: ModelFilters) -> bool:
    dearest, price = filters.max_cost_per_1k_input_tokens_usd, option.model.cost_per_input_token
    # What nobody knows the price of is not known to be cheap enough.
    return dearest is not None and (price is None or price * 1000 > dearest)


_EXCLUDES: Final[Mapping[str, Callable[[Option, ModelFilters], bool]]] = {
    "min_context_window": _too_small,
    "required_capabilities": _not_capable,
    "excluded_models": _named_as_excluded,
    "included_providers": _of_another_provider,
    "max_cost_per_1k_input_tokens_usd": _too_dear,
}


def _obstacles(options: Iterable[Option], filters: ModelFilters) -> str:
    """How many models each filter excludes, such as `required_capabilities excludes 3 of 3`."""
    every = list(options)
    counts = {name: sum(excludes(option, filters) for option in every) for name, excludes in _EXCLUDES.items()}
    excluding = [f"{name} excludes {count} of {len(every)}" for name, count in counts.items() if count]
    return ", ".join(excluding) or "the catalog has none"


def _quality(chain: Sequence[str], option: Option) -> tuple[int, float]:
    """The chain is the organization's own word about quality; of the rest the price is taken for it."""
    place = chain.index(option.name) if option.name in chain else len(chain)
    return place, -((option.per_input or 0.0) + (option.per_output or 0.0))


def _weights(record: RoutingPolicyRecord) -> dict[str, float]:
    return {_name(entry): entry.cost_weight for entry in record.fallback_chain if entry.cost_weight != 1.0}


def _name(entry: ChainEntry) -> str:
    return f"{entry.provider}/{entry.model_id}"


def _weighted(option: Option, weights: Mapping[str, float]) -> Option:
    weight = weights.get(option.name, 1.0)
    return option if weight == 1.0 else msgspec.structs.replace(option, weight=weight)


def _float(price: Decimal | None) -> float | None:
    return None if price is None else float(price)
