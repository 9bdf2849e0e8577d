"""Routing policies of a tenant, compiled: the callers they apply to, and the models they choose from
(docs/cost-routing.md).

Filters are applied here, at load time. A request adds its own needs (`ModelPool.capable`); the result is cached for
each combination of needs."""

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

#: Capabilities that a request can need, as bits.
CAPABILITY_BITS: Final[Mapping[str, int]] = {
    "vision": 1, "function_calling": 2, "json_mode": 4, "streaming": 8, "code_execution": 16,
}  # fmt: skip
#: Capabilities with another name in the catalog.
_CATALOG_NAMES: Final = {"json_mode": "structured_output"}
#: USD a token of a model without a price. Finite, so that zero tokens cost nothing.
UNKNOWN_PRICE_USD_PER_TOKEN: Final = 1e30
#: Tokens of a model without a stated context window.
_UNBOUNDED_WINDOW: Final = 2**62


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the catalog as strategies see it. Prices are USD a token, for comparisons only: charges and caps are
    computed in decimals. None: unknown."""

    provider: ProviderRecord
    model: ModelRecord
    #: `provider/model-id`
    name: str
    #: the entry's id as a number, which is looked up three times as fast as a UUID
    key: int
    #: bits of `CAPABILITY_BITS` that the catalog lists as supported, and as unsupported
    supports: int
    lacks: int
    embeds: bool
    per_input: float | None
    per_output: float | None
    window: int
    weight: float = 1.0


class Options(tuple[Option, ...]):
    """Options with their values in columns, because strategies cannot inspect hundreds of objects in time."""

    keys: list[int]
    per_input: list[float]
    per_output: list[float]
    #: prices times the entries' weights, and their sums if all prices are known
    weighted_input: list[float]
    weighted_output: list[float]
    weighted_sums: tuple[float, float] | None
    #: cached latencies: the state they were computed from, each model's milliseconds, and their sum
    times: tuple[object, list[float], float] | None

    def __new__(cls, options: Iterable[Option]) -> "Options":
        new = super().__new__(cls, options)
        new.keys = [option.key for option in new]
        # An unknown price sorts last without a special case.
        new.per_input = [
            UNKNOWN_PRICE_USD_PER_TOKEN if option.per_input is None else option.per_input for option in new
        ]
        new.per_output = [
            UNKNOWN_PRICE_USD_PER_TOKEN if option.per_output is None else option.per_output for option in new
        ]
        new.weighted_input = [price * option.weight for price, option in zip(new.per_input, new, strict=True)]
        new.weighted_output = [price * option.weight for price, option in zip(new.per_output, new, strict=True)]
        all_known = (
            UNKNOWN_PRICE_USD_PER_TOKEN not in new.per_input and UNKNOWN_PRICE_USD_PER_TOKEN not in new.per_output
        )
        new.weighted_sums = (sum(new.weighted_input), sum(new.weighted_output)) if all_known else None
        new.times = None
        return new


class ModelPool:
    """Options in a fixed order."""

    __slots__ = ("_capable", "options")

    def __init__(self, options: Iterable[Option]) -> None:
        self.options = tuple(options)
        self._capable: dict[tuple[int, bool], Options] = {}

    def capable(self, needs: int, embeds: bool) -> Options:
        """Return the options that support the needs by the catalog; if there are none, those that do not exclude
        them."""
        capable = self._capable.get((needs, embeds))
        if capable is None:
            same_kind = [option for option in self.options if option.embeds is embeds]
            supporting = [option for option in same_kind if option.supports & needs == needs]
            capable = Options(supporting or [option for option in same_kind if not option.lacks & needs])
            self._capable[needs, embeds] = capable
        return capable


class RoutingPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """`pool` contains the options that pass the filters, sorted by name, or under `quality_optimized` the best first:
    the chain's in its order, then by descending price. `chain` is the fallback chain by priority, without missing
    entries; filters do not apply to it, because it was written by hand."""

    id: UUID
    name: str
    strategy: Strategy
    pool: ModelPool
    chain: ModelPool
    #: pool and chain together for a cap with `use_cheapest`; otherwise `pool`
    every: ModelPool
    #: filters that exclude all models, for an error's message; empty if `pool` is not
    nothing_passes: str = ""
    cap: CostCap | None = None
    latency_budget_ms: int | None = None
    cache_ttl_seconds: int | None = None


class Routing:
    """A tenant's enabled policies. `of` costs nothing if there are none."""

    __slots__ = ("_by_group", "_default", "_order")

    def __init__(self, policies: Sequence[tuple[RoutingPolicyRecord, RoutingPolicy]] = ()) -> None:
        self._by_group: dict[UUID, RoutingPolicy] = {}
        self._default: RoutingPolicy | None = None
        #: creation order: of several policies the oldest applies
        self._order = {policy.id: number for number, (_, policy) in enumerate(policies)}
        for record, policy in policies:
            for group in record.group_ids:
                self._by_group.setdefault(group, policy)
            if not record.group_ids and self._default is None:
                self._default = policy

    def of(self, groups: Sequence[UUID]) -> RoutingPolicy | None:
        """Return the policy of a caller in these groups: the oldest of the groups' policies, else the organization's
        default."""
        if self._by_group:
            matching = [policy for group in groups if (policy := self._by_group.get(group)) is not None]
            if matching:
                return matching[0] if len(matching) == 1 else min(matching, key=lambda policy: self._order[policy.id])
        return self._default


def compile_routing(
    records: Iterable[RoutingPolicyRecord], providers: Mapping[str, ProviderRecord], models: Iterable[ModelRecord]
) -> Routing:
    """Compiles records, which come in the order of their creation. No record is a fault: chain entries that the catalog
    lacks are skipped until they are back."""
    all_records = list(records)
    if not all_records:
        return Routing()
    options = options_of(providers, models)
    pools: dict[object, ModelPool] = {}
    return Routing([(record, compile_routing_policy(record, options, pools)) for record in all_records])


def options_of(providers: Mapping[str, ProviderRecord], models: Iterable[ModelRecord]) -> dict[str, Option]:
    """Return the active entries of enabled providers, by name and sorted by name."""
    by_name = {}
    for model in models:
        provider = providers.get(model.provider)
        if model.is_active and provider is not None and provider.enabled:
            option = _option(provider, model)
            by_name[option.name] = option
    return dict(sorted(by_name.items()))


def compile_routing_policy(
    record: RoutingPolicyRecord, options: Mapping[str, Option], pools: dict[object, ModelPool] | None = None
) -> RoutingPolicy:
    """`pools` caches pools of other policies over the same options: policies that choose from the same models in the
    same way share one, which saves memory for hundreds of policies over thousands of models."""
    pools = {} if pools is None else pools
    chain_names = tuple(dict.fromkeys(map(_name, sorted(record.fallback_chain, key=lambda entry: entry.priority))))
    chain = [options[name] for name in chain_names if name in options]
    weights = _weights(record) if record.strategy == "balanced" else {}
    best_first = chain_names if record.strategy == "quality_optimized" else None
    key = (record.model_filters, tuple(weights.items()), best_first)
    pool = pools.get(key)
    if pool is None:
        passing = [_weighted(option, weights) for option in options.values() if _passes(option, record.model_filters)]
        if best_first is not None:
            passing.sort(key=partial(_quality, best_first))
        pool = pools[key] = ModelPool(passing)
    every = pool
    if record.cost_cap is not None and record.cost_cap.action_on_exceed == "use_cheapest":
        every = ModelPool({option.name: option for option in (*pool.options, *chain)}.values())
    return RoutingPolicy(
        id=record.id,
        name=record.name,
        strategy=record.strategy,
        pool=pool,
        chain=ModelPool(chain),
        every=every,
        nothing_passes="" if pool.options else _obstacles(options.values(), record.model_filters),
        cap=record.cost_cap,
        latency_budget_ms=record.latency_budget_ms,
        cache_ttl_seconds=record.cache_ttl_seconds,
    )


def bits(capabilities: Iterable[str]) -> int:
    """Return the bits of capabilities named in `CAPABILITY_BITS`."""
    needed = 0
    for name in capabilities:
        needed |= CAPABILITY_BITS[name]
    return needed


def _option(provider: ProviderRecord, model: ModelRecord) -> Option:
    stated = {name: model.capabilities.get(_CATALOG_NAMES.get(name, name)) for name in CAPABILITY_BITS}
    return Option(
        provider=provider,
        model=model,
        name=f"{model.provider}/{model.model_id}",
        key=model.id.int,
        supports=bits(name for name, supported in stated.items() if supported),
        lacks=bits(name for name, supported in stated.items() if supported is False),
        embeds=bool(model.capabilities.get("embeddings")),
        per_input=_float(model.cost_per_input_token),
        per_output=_float(model.cost_per_output_token),
        window=model.context_window or _UNBOUNDED_WINDOW,
    )


def _passes(option: Option, filters: ModelFilters) -> bool:
    return not any(excludes(option, filters) for excludes in _EXCLUSIONS.values())


def excluding_filters(option: Option, filters: ModelFilters) -> list[str]:
    """Return the names of the filters that exclude the option."""
    return [name for name, excludes in _EXCLUSIONS.items() if excludes(option, filters)]


def _has_smaller_window(option: Option, filters: ModelFilters) -> bool:
    minimum = filters.min_context_window
    return minimum is not None and (option.model.context_window or 0) < minimum


def _lacks_capability(option: Option, filters: ModelFilters) -> bool:
    needed = bits(filters.required_capabilities)
    return option.supports & needed != needed


def _is_excluded(option: Option, filters: ModelFilters) -> bool:
    return not filters.excluded_models.isdisjoint({option.name, option.model.model_id})


def _has_other_provider(option: Option, filters: ModelFilters) -> bool:
    return bool(filters.included_providers) and option.model.provider not in filters.included_providers


def _exceeds_price(option: Option, filters: ModelFilters) -> bool:
    maximum, price = filters.max_cost_per_1k_input_tokens_usd, option.model.cost_per_input_token
    # A model without a price may be too expensive.
    return maximum is not None and (price is None or price * 1000 > maximum)


_EXCLUSIONS: Final[Mapping[str, Callable[[Option, ModelFilters], bool]]] = {
    "min_context_window": _has_smaller_window,
    "required_capabilities": _lacks_capability,
    "excluded_models": _is_excluded,
    "included_providers": _has_other_provider,
    "max_cost_per_1k_input_tokens_usd": _exceeds_price,
}


def _obstacles(options: Iterable[Option], filters: ModelFilters) -> str:
    """Return how many models each filter excludes, such as `required_capabilities excludes 3 of 3`."""
    all_options = list(options)
    counts = {name: sum(excludes(option, filters) for option in all_options) for name, excludes in _EXCLUSIONS.items()}
    excluding = [f"{name} excludes {count} of {len(all_options)}" for name, count in counts.items() if count]
    return ", ".join(excluding) or "the catalog has none"


def _quality(chain: Sequence[str], option: Option) -> tuple[int, float]:
    """Sort key of quality: the chain's order first, then descending price, as an estimate of quality."""
    rank = chain.index(option.name) if option.name in chain else len(chain)
    return rank, -((option.per_input or 0.0) + (option.per_output or 0.0))


def _weights(record: RoutingPolicyRecord) -> dict[str, float]:
    return {_name(entry): entry.cost_weight for entry in record.fallback_chain if entry.cost_weight != 1.0}


def _name(entry: ChainEntry) -> str:
    return f"{entry.provider}/{entry.model_id}"


def _weighted(option: Option, weights: Mapping[str, float]) -> Option:
    weight = weights.get(option.name, 1.0)
    return option if weight == 1.0 else msgspec.structs.replace(option, weight=weight)


def _float(price: Decimal | None) -> float | None:
    return None if price is None else float(price)
