"""What a call can take at most, before it is made: what budgets set aside for it (decisions 7, Budgets).

A token is at least one byte of text in the vocabularies that models have, so the bytes of a request bound its tokens.
An image has no such measure: each is taken for `IMAGE_TOKENS`, more than any vendor charges today. What a model may
answer is the caller's own limit, else one that is sent along.
"""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.slots import Unseen, slots
from gatehouse.engine.exchange import Asked, Candidate
from gatehouse.policy.budgets import nano

#: What an image, a recording or a file takes at most.
IMAGE_TOKENS: Final = 40_000
#: What a model may answer whose catalog entry says nothing about it.
OUTPUT_TOKENS: Final = 16_384
#: Words of the protocol around each message, as models count them: the bytes of a short request's JSON are more.
_FRAME: Final = 16
_LIMITS: Final = ("max_completion_tokens", "max_tokens", "max_output_tokens")
_HIDES_BYTES: Final = (b"base64", b"image", b"audio", b"file")


class Bound(msgspec.Struct, frozen=True, gc=False):
    """`nano_usd` is None where a candidate has no price."""

    tokens: int
    nano_usd: int | None


def bound(x: Asked, chain: Iterable[Candidate], output_limit: int | None) -> Bound:
    """Of the dearest candidate. `output_limit` is what is sent along where the caller says nothing: `default_output`."""
    given = input_tokens(x)
    choices = _whole_number(x.call.body.get("n")) or 1
    asked = asked_output(x.call.body)
    tokens, dearest = 0, 0
    unpriced = False
    for candidate in chain:
        answer = choices * _answer(x, candidate, asked or output_limit)
        tokens = max(tokens, given + answer)
        price = _dearest_input(candidate)
        per_output = candidate.model.cost_per_output_token
        if price is None or (answer and per_output is None):
            unpriced = True
        else:
            dearest = max(dearest, nano(given * price + answer * (per_output or 0)))
    return Bound(tokens, None if unpriced else dearest)


def asked_output(body: dict[str, Any]) -> int | None:
    """The caller's own limit of an answer's tokens."""
    return next((limit for name in _LIMITS if (limit := _whole_number(body.get(name)))), None)


def default_output(x: Asked, chain: Iterable[Candidate]) -> int | None:
    """What to send along as the answer's limit; None where there is one already, or nothing to limit."""
    if DIALECTS[x.call.dialect].operation != "chat" or asked_output(x.call.body):
        return None
    return max((candidate.model.max_output_tokens or OUTPUT_TOKENS) for candidate in chain)


def priced(x: Asked, candidate: Candidate) -> bool:
    """Whether the catalog knows what the call costs there."""
    model = candidate.model
    answers = DIALECTS[x.call.dialect].operation == "chat"
    return model.cost_per_input_token is not None and (not answers or model.cost_per_output_token is not None)


def input_tokens(x: Asked) -> int:
    """At most. Of most requests the length of what came."""
    raw = x.identified.received.body
    hidden = any(word in raw for word in _HIDES_BYTES)
    given = _looked_through(x.call.body) if hidden else len(raw)
    filters = x.identified.policy.filters.filters
    # What the organization puts before the caller's words.
    return given + _FRAME + sum(len(each.instruction.encode()) for each in filters if each.instruction)


def _looked_through(body: dict[str, Any]) -> int:
    # What is named without being sent (an image's URL) is counted as one by its field's name, among the texts.
    total = 0
    for each in slots(body):
        if isinstance(each, Unseen):
            total += IMAGE_TOKENS
        else:
            total += len(each.text.encode()) + _FRAME
            if each.key in {"url", "image_url", "file_url", "file_id", "uri"}:
                total += IMAGE_TOKENS
    return total


def _answer(x: Asked, candidate: Candidate, limit: int | None) -> int:
    if limit is None:
        return 0
    most = candidate.model.max_output_tokens
    # What the caller asks for beyond a model's own limit is an error at the provider, not a longer answer.
    return min(limit, most) if most else limit


def _dearest_input(candidate: Candidate) -> Decimal | None:
    model = candidate.model
    if model.cost_per_input_token is None:
        return None
    classes = (model.cost_per_input_token, model.cost_per_cached_input_token, model.cost_per_cache_write_token)
    return max(price for price in classes if price is not None)


def _whole_number(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None
