"""What a call cost, in USD (decisions 7, Catalog)."""

from decimal import Decimal

from gatehouse.engine.conversation.usage import Usage
from gatehouse.policy.records import ModelRecord


def cost(usage: Usage, model: ModelRecord) -> Decimal | None:
    """None where a price is unknown that the call needs: unknown is not free.

    Each class of tokens is paid once. A class without a price of its own costs what input costs.
    """
    price_in, price_out = model.cost_per_input_token, model.cost_per_output_token
    if price_in is None or (price_out is None and usage.output_tokens):
        return None
    total = usage.input_tokens * price_in + usage.output_tokens * (price_out or 0)
    if usage.cached_tokens:
        total += usage.cached_tokens * _either(model.cost_per_cached_input_token, price_in)
    if usage.cache_write_tokens:
        total += usage.cache_write_tokens * _either(model.cost_per_cache_write_token, price_in)
    return Decimal(total)


def _either(price: Decimal | None, otherwise: Decimal) -> Decimal:
    # Not `or`: a price of zero is a price.
    return otherwise if price is None else price
