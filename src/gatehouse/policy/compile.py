"""Compiles the records of a tenant to a snapshot. All sorting, parsing and indexing is done here, when the records are
loaded, and never during a request.

The result is a complete snapshot, or a list of all faults in the records.
"""

from collections import defaultdict
from decimal import Decimal
from zoneinfo import ZoneInfo

from gatehouse.foundation.egress.networks import network
from gatehouse.policy.addresses import AddressRanges
from gatehouse.policy.aliases import compile_aliases
from gatehouse.policy.budgets import Budgets
from gatehouse.policy.catalog import ModelRecord, TenantRecords
from gatehouse.policy.dlp.compile import compile_dlp
from gatehouse.policy.filters import compile_filters
from gatehouse.policy.mcp import compile_mcp_servers
from gatehouse.policy.model_access import compile_access
from gatehouse.policy.routing import compile_routing
from gatehouse.policy.rules.evaluation import compile_rules
from gatehouse.policy.snapshot import Snapshot


class PolicyFault(str):
    """The description of a fault in a record."""

    __slots__ = ()


def _price(model: ModelRecord) -> tuple[bool, Decimal, str]:
    """Return a sort key: the price of one input token plus one output token. Models without a price come last."""
    prices = (model.cost_per_input_token, model.cost_per_output_token)
    known_prices = [price for price in prices if price is not None]
    return len(known_prices) < len(prices), sum(known_prices, Decimal(0)), model.provider


def compile_policy(records: TenantRecords, before: Snapshot | None = None) -> Snapshot | list[PolicyFault]:
    """Compile records to a snapshot, or return their faults. `before` is the previous snapshot of the tenant, whose
    unchanged parts are reused."""
    faults: list[PolicyFault] = []
    models: dict[str, ModelRecord] = {}
    bare: dict[str, list[ModelRecord]] = defaultdict(list)
    for model in records.models:
        models[f"{model.provider}/{model.model_id}"] = model
        if model.is_active:
            bare[model.model_id].append(model)
    ranges = _ranges(records.ip_allowlist, faults)
    dlp, new_faults = compile_dlp(records.governance, records.feature_flags, before.dlp if before else None)
    faults += map(PolicyFault, new_faults)
    rules, new_faults = compile_rules(records.governance)
    faults += map(PolicyFault, new_faults)
    if faults:
        return faults
    providers = {provider.id: provider for provider in records.providers}
    routing_enabled = records.feature_flags.get("cost_routing", True)
    return Snapshot(
        tenant_id=records.tenant_id,
        revision=records.revision,
        providers=providers,
        models=models,
        bare={name: tuple(sorted(entries, key=_price)) for name, entries in bare.items()},
        feature_flags=records.feature_flags,
        dlp=dlp,
        filters=compile_filters(records.governance.filters),
        rules=rules,
        access=compile_access(records.model_access),
        ip_allowlist=ranges,
        ip_bypass_for_mfa=records.ip_bypass_for_mfa,
        budgets=Budgets(records.budgets, records.tenant_id, ZoneInfo(records.timezone)),
        routing=compile_routing(records.routing_policies if routing_enabled else (), providers, records.models),
        registry_enforcement=records.governance.registry_enforcement,
        allowed_fields=frozenset(records.allowed_fields),
        sample_share=records.sample_share,
        overrides=records.overrides,
        aliases=compile_aliases(records.model_aliases, providers, models),
        mcp_servers=compile_mcp_servers(records.mcp_servers),
    )


def _ranges(cidrs: tuple[str, ...] | None, faults: list[PolicyFault]) -> AddressRanges | None:
    if cidrs is None:
        return None
    networks = []
    for cidr in cidrs:
        try:
            networks.append(network(cidr))
        except ValueError:
            faults.append(PolicyFault(f"ip_allowlist: {cidr!r} is not a CIDR range"))
    return AddressRanges(networks)
