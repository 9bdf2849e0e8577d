"""What a call can take at most, before it is made: what budgets set aside for it (decisions 7, Budgets).

A token is at least one byte of text in the vocabularies that models have, so the bytes of a request bound its tokens.
An image has no such measure: each is taken for `IMAGE_TOKENS`, more than any vendor charges today. What a model may
answer is the caller's own limit, else one that is sent along.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.slots import Unseen, slots
from gatehouse.engine.exchange import Asked, Candidate
from gatehouse.policy.budgets import NANO
from gatehouse.policy.records import ModelRecord

#: What an image, a recording or a file takes at most.
IMAGE_TOKENS: Final = 40_000
#: What a model may answer whose catalog entry says nothing about it.
OUTPUT_TOKENS: Final = 16_384
#: Words of the protocol around each message, as models count them: the bytes of a short request's JSON are more.
_FRAME: Final = 16
#: Nano dollars, and a little more.
_ABOVE: Final = NANO * (1 + 1e-12)
_LIMITS: Final = ("max_completion_tokens", "max_tokens", "max_output_tokens")


class Bound(msgspec.Struct, frozen=True, gc=False):
    """`nano_usd` is None where a candidate has no price."""

    tokens: int
    nano_usd: int | None


def bound(x: Asked, chain: Iterable[Candidate], output_limit: int | None) -> Bound:
    """Of the dearest candidate. `output_limit` is what is sent where the caller says nothing: see `default_output`."""
    given = input_tokens(x)
    choices = _whole_number(x.call.body.get("n")) or 1
    limit = asked_output(x.call.body) or output_limit
    tokens, dearest = 0, 0
    unpriced = False
    for candidate in chain:
        answer = choices * _answer(candidate, limit)
        tokens = max(tokens, given + answer)
        prices = _prices(candidate.model)
        if prices is None or (answer and prices[1] is None):
            unpriced = True
        else:
            # Floats are quick; the dollar's billionth on top is more than they are wrong by.
            cost = (given * prices[0] + answer * (prices[1] or 0.0)) * _ABOVE
            dearest = max(dearest, int(cost) + 1)
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
    hidden = b"base64" in raw or b"image" in raw or b"audio" in raw or b"file" in raw
    given = _FRAME + (_looked_through(x.call.body) if hidden else len(raw))
    for each in x.identified.policy.filters.filters:
        # What the organization puts before the caller's words.
        if each.instruction:
            given += len(each.instruction.encode())
    return given


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


def _answer(candidate: Candidate, limit: int | None) -> int:
    if limit is None:
        return 0
    most = candidate.model.max_output_tokens
    # What the caller asks for beyond a model's own limit is an error at the provider, not a longer answer.
    return min(limit, most) if most else limit


def _prices(model: ModelRecord) -> tuple[float, float | None] | None:
    """USD a token: the dearest class of input, and output."""
    dearest = model.cost_per_input_token
    if dearest is None:
        return None
    for other in (model.cost_per_cached_input_token, model.cost_per_cache_write_token):
        if other is not None and other > dearest:
            dearest = other
    out = model.cost_per_output_token
    return float(dearest), None if out is None else float(out)


def _whole_number(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None
