"""Computes the cost of a call in USD from the prices of the catalog."""

from decimal import Decimal

from gatehouse.engine.conversation.usage import Usage
from gatehouse.policy.catalog import ModelRecord


def cost(usage: Usage, model: ModelRecord) -> Decimal | None:
    """Return the cost, or None if the catalog lacks a price that the call needs, because an unknown price is not zero.

    Each class of tokens is charged once. A class that has no price of its own is charged as input.
    """
    price_in, price_out = model.cost_per_input_token, model.cost_per_output_token
    if price_in is None or (price_out is None and usage.output_tokens):
        return None
    total = usage.input_tokens * price_in + usage.output_tokens * (price_out or 0)
    if usage.cached_tokens:
        total += usage.cached_tokens * _price_or(model.cost_per_cached_input_token, price_in)
    if usage.cache_write_tokens:
        total += usage.cache_write_tokens * _price_or(model.cost_per_cache_write_token, price_in)
    return Decimal(total)


def _price_or(price: Decimal | None, default: Decimal) -> Decimal:
    # A price of zero is valid, so `or` cannot be used.
    return default if price is None else price
