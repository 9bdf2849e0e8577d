"""Compiles the routing policies of a tenant: the callers that they apply to, and the models that they choose from
(docs/cost-routing.md).

Filters are applied here, when the policies are loaded. A request also needs some capabilities (`ModelPool.capable`).
The result is cached for each combination of capabilities."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Final, Literal, TypeAlias, get_args
from uuid import UUID

import msgspec

from gatehouse.policy.catalog import (
    ChainEntry,
    CostCap,
    ModelFilters,
    ModelRecord,
    ProviderRecord,
    RoutingPolicyRecord,
    Strategy,
)

#: The use of a model: `chat`, or the name of the catalog capability of models with only this use.
ModelUse: TypeAlias = Literal[
    "chat", "embeddings", "moderation", "rerank", "image_generation", "transcription", "speech"
]  # fmt: skip
#: The uses of models that do not chat.
SPECIAL_USES: Final[tuple[ModelUse, ...]] = tuple(use for use in get_args(ModelUse) if use != "chat")

Capability: TypeAlias = Literal["vision", "function_calling", "json_mode", "streaming", "code_execution"]

#: The bit of each capability that a request can need.
CAPABILITY_BITS: Final[Mapping[str, int]] = {
    "vision": 1, "function_calling": 2, "json_mode": 4, "streaming": 8, "code_execution": 16,
}  # fmt: skip
#: The catalog's names of those capabilities that have a different name in the catalog.
_CATALOG_NAMES: Final = {"json_mode": "structured_output"}
#: Price per token that is used for a model without a price. It is finite, so that zero tokens cost nothing.
UNKNOWN_PRICE_USD_PER_TOKEN: Final = 1e30
#: Context window, in tokens, that is used for a model whose context window is unknown.
_UNBOUNDED_WINDOW_TOKENS: Final = 2**62


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the catalog, in the form that strategies use. Prices are in USD per token, or None if unknown. They
    are only used for comparisons; charges and caps are computed with decimals."""

    provider: ProviderRecord
    model: ModelRecord
    #: `provider/model-id`
    name: str
    #: the id of the entry as a number; its lookup is three times as fast as that of a UUID
    key: int
    #: bits of the capabilities that the catalog lists as supported
    supports: int
    #: bits of the capabilities that the catalog lists as unsupported
    lacks: int
    #: the uses that the catalog lists; `chat` if it lists no other
    uses: frozenset[ModelUse]
    #: the uses that the catalog neither lists nor excludes
    possible_uses: frozenset[ModelUse]
    per_input: float | None
    per_output: float | None
    window: int
    weight: float = 1.0


class Options(tuple[Option, ...]):
    """Options with their values in lists, because strategies would need too much time to inspect hundreds of
    objects."""

    keys: list[int]
    per_input: list[float]
    per_output: list[float]
    #: prices multiplied by the weights of the entries
    weighted_input: list[float]
    weighted_output: list[float]
    #: the sums of the weighted prices; None if a price is unknown
    weighted_sums: tuple[float, float] | None
    #: cached latencies: the state that they were computed from, the milliseconds of each model, and their sum
    times: tuple[object, list[float], float] | None

    def __new__(cls, options: Iterable[Option]) -> "Options":
        new = super().__new__(cls, options)
        new.keys = [option.key for option in new]
        # With a very high price, models with an unknown price are sorted last.
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
    """The options of a routing policy, in a fixed order."""

    __slots__ = ("_capable", "options")

    def __init__(self, options: Iterable[Option]) -> None:
        self.options = tuple(options)
        self._capable: dict[tuple[int, ModelUse], Options] = {}

    def capable(self, needs: int, use: ModelUse) -> Options:
        """Return the options for a use that support all needed capabilities according to the catalog. If there are
        none, return the options for which the catalog lists none of these capabilities as unsupported."""
        capable = self._capable.get((needs, use))
        if capable is None:
            same_use = [option for option in self.options if use in option.uses]
            same_use = same_use or [option for option in self.options if use in option.possible_uses]
            supporting = [option for option in same_use if option.supports & needs == needs]
            capable = Options(supporting or [option for option in same_use if not option.lacks & needs])
            self._capable[needs, use] = capable
        return capable


class RoutingPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled routing policy.

    `pool` has the options that pass the filters, sorted by name. With the strategy `quality_optimized`, the best option
    is first: the options of the chain in its order, then the others by descending price. `chain` has the options of the
    fallback chain, sorted by priority, without entries that are not in the catalog. Filters do not apply to the chain,
    because an administrator has chosen its entries."""

    id: UUID
    name: str
    strategy: Strategy
    pool: ModelPool
    chain: ModelPool
    #: the options of `pool` and `chain` if the policy has a cap with `use_cheapest`; otherwise `pool`
    every: ModelPool
    #: description of the filters that exclude all models, for an error message; empty if `pool` has options
    nothing_passes: str = ""
    cap: CostCap | None = None
    latency_budget_ms: int | None = None
    cache_ttl_seconds: int | None = None


class Routing:
    """The enabled routing policies of a tenant. `of` costs almost nothing if there are none."""

    __slots__ = ("_by_group", "_default", "_order")

    def __init__(self, policies: Sequence[tuple[RoutingPolicyRecord, RoutingPolicy]] = ()) -> None:
        self._by_group: dict[UUID, RoutingPolicy] = {}
        self._default: RoutingPolicy | None = None
        #: number of each policy in the order of creation; if several policies match, the oldest applies
        self._order = {policy.id: number for number, (_, policy) in enumerate(policies)}
        for record, policy in policies:
            for group in record.group_ids:
                self._by_group.setdefault(group, policy)
            if not record.group_ids and self._default is None:
                self._default = policy

    def of(self, groups: Sequence[UUID]) -> RoutingPolicy | None:
        """Return the policy for a caller in these groups: the oldest policy of one of the groups, or the organization's
        default if the groups have no policy."""
        if self._by_group:
            matching = [policy for group in groups if (policy := self._by_group.get(group)) is not None]
            if matching:
                return matching[0] if len(matching) == 1 else min(matching, key=lambda policy: self._order[policy.id])
        return self._default


def compile_routing(
    records: Iterable[RoutingPolicyRecord], providers: Mapping[str, ProviderRecord], models: Iterable[ModelRecord]
) -> Routing:
    """Compile records, which must be in the order of their creation. Chain entries that are not in the catalog are
    skipped and are not a fault, because they may be added to the catalog again."""
    all_records = list(records)
    if not all_records:
        return Routing()
    options = options_of(providers, models)
    pools: dict[object, ModelPool] = {}
    return Routing([(record, compile_routing_policy(record, options, pools)) for record in all_records])


def options_of(providers: Mapping[str, ProviderRecord], models: Iterable[ModelRecord]) -> dict[str, Option]:
    """Return the active catalog entries of enabled providers, by name, sorted by name."""
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
    """Compile one routing policy. `pools` caches the pools of other policies with the same options. Policies with the
    same filters and order share a pool, which saves memory for hundreds of policies and thousands of models."""
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
    """Return the combined bits of the capabilities."""
    needed = 0
    for name in capabilities:
        needed |= CAPABILITY_BITS[name]
    return needed


def _option(provider: ProviderRecord, model: ModelRecord) -> Option:
    capabilities = {name: model.capabilities.get(_CATALOG_NAMES.get(name, name)) for name in CAPABILITY_BITS}
    uses, possible_uses = _uses(model)
    return Option(
        provider=provider,
        model=model,
        name=f"{model.provider}/{model.model_id}",
        key=model.id.int,
        supports=bits(name for name, supported in capabilities.items() if supported),
        lacks=bits(name for name, supported in capabilities.items() if supported is False),
        uses=uses,
        possible_uses=possible_uses,
        per_input=_float(model.cost_per_input_token),
        per_output=_float(model.cost_per_output_token),
        window=model.context_window or _UNBOUNDED_WINDOW_TOKENS,
    )


def _uses(model: ModelRecord) -> tuple[frozenset[ModelUse], frozenset[ModelUse]]:
    """Return the uses that the catalog lists, and those that it neither lists nor excludes. A model makes embeddings
    only if its entry lists them."""
    listed = frozenset(use for use in SPECIAL_USES if model.capabilities.get(use))
    if listed:
        return listed, frozenset()
    possible = (use for use in SPECIAL_USES if use != "embeddings" and model.capabilities.get(use) is None)
    return frozenset({"chat"}), frozenset(possible)


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
    # A model with an unknown price may be too expensive, so it is excluded.
    return maximum is not None and (price is None or price * 1000 > maximum)


_EXCLUSIONS: Final[Mapping[str, Callable[[Option, ModelFilters], bool]]] = {
    "min_context_window": _has_smaller_window,
    "required_capabilities": _lacks_capability,
    "excluded_models": _is_excluded,
    "included_providers": _has_other_provider,
    "max_cost_per_1k_input_tokens_usd": _exceeds_price,
}


def _obstacles(options: Iterable[Option], filters: ModelFilters) -> str:
    """Return a text that says how many models each filter excludes, such as
    `required_capabilities excludes 3 of 3`."""
    all_options = list(options)
    counts = {name: sum(excludes(option, filters) for option in all_options) for name, excludes in _EXCLUSIONS.items()}
    excluding = [f"{name} excludes {count} of {len(all_options)}" for name, count in counts.items() if count]
    return ", ".join(excluding) or "the catalog has none"


def _quality(chain: Sequence[str], option: Option) -> tuple[int, float]:
    """Return a sort key for quality. Options in the chain come first, in the order of the chain. Other options are
    sorted by descending price, which is an estimate of quality."""
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
