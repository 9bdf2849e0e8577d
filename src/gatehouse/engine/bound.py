"""What a call can take at most, before it is made: what budgets set aside for it (decisions 7, Budgets).

A token is at least one byte of text in the vocabularies that models have, so the bytes that go to the provider bound
the tokens of their text. An image has no such measure: each is taken for `IMAGE_TOKENS`. Other files, and what a
provider looks up by itself, may be as much as the model can read. What a model may answer is the caller's own limit,
else one that is sent along.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from gatehouse.engine.candidate import Candidate
from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.slots import Unseen, slots
from gatehouse.engine.exchange import Asked, Given
from gatehouse.foundation.errors import BadRequest
from gatehouse.policy.budgets import NANO
from gatehouse.policy.records import ModelRecord

#: What an image takes at most: more than any vendor charges today.
IMAGE_TOKENS: Final = 50_000
#: What a model can read whose catalog entry says nothing about it.
CONTEXT_TOKENS: Final = 200_000
#: What a model may answer whose catalog entry says nothing about it.
OUTPUT_TOKENS: Final = 16_384
#: Words of the protocol around each message, as models count them: the bytes of a short request's JSON are more.
_FRAME: Final = 16
#: What vendors tell their models about tools in general.
_ABOUT_TOOLS: Final = 1_000
#: More than any call takes, and little enough for PostgreSQL to add up many of them.
_MOST_TOKENS: Final = 10**12
_MOST_NANO_USD: Final = 10**15
#: Nano dollars, and a little more.
_ABOVE: Final = NANO * (1 + 1e-12)
#: By dialect: what stands under another's name limits nothing.
_LIMITS: Final[Mapping[str, tuple[str, ...]]] = {
    "openai_chat": ("max_completion_tokens", "max_tokens"),
    "openai_responses": ("max_output_tokens",),
    "anthropic_messages": ("max_tokens",),
}
#: Ends of the names of fields that hold bytes, or name what is not sent. In JSON no text holds these bytes: its
#: quotation marks are escaped. One search that looks back from each name's end is much quicker than one for each name.
_HOLDING: Final = (
    b'url":', b'uri":', b'file_id":', b'"data":', b'file_data":', b'b64_json":', b'"image":', b'"video":', b'"audio":',
)  # fmt: skip
_encode: Final = msgspec.json.Encoder().encode
_holds: Final = re.compile(b'":(?:' + b"|".join(b"(?<=" + name + b")" for name in _HOLDING) + b")").search
_IMAGES: Final = frozenset({"image_url", "image"})
#: An image's or another file's, which the part around it says.
_ADDRESSES: Final = frozenset({"url", "uri"})
_FILES: Final = frozenset({"file_url", "file_id", "video", "audio"})
_OF_FILES: Final = (b'"document"', b'"file', b'"input_file', b'"video', b'"audio')
#: Tools that the caller runs.
_CALLERS: Final = frozenset({None, "function", "custom"})
_CALLERS_TOO: Final = ("bash_", "text_editor_", "computer_", "memory_")


class PriceUnknown(BadRequest):
    """A call whose cost cannot be known cannot be kept within a limit in dollars."""

    code = "price_unknown"

    @classmethod
    def of(cls, candidate: Candidate, limit: str) -> "PriceUnknown":
        """`limit` is what begins the message: "A cost cap"."""
        return cls(
            f"{limit} is in force, and the catalog has no price for {candidate.provider.id}/"
            f"{candidate.model.model_id}. An administrator can set cost_per_input_token and cost_per_output_token."
        )


class Bound(msgspec.Struct, frozen=True, gc=False):
    """`nano_usd` is None where a candidate has no price."""

    tokens: int
    nano_usd: int | None


def bound(x: Asked, chain: Iterable[Candidate], output_limit: int | None) -> Bound:
    """Of the dearest candidate. `output_limit` is what is sent where the caller says nothing: see `default_output`."""
    held, answers = given(x), _answers(x.call)
    asked, choices, predicted = held.output, held.choices if answers else 0, held.predicted
    tokens, dearest = 0, 0
    unpriced = False
    for candidate in chain:
        model = candidate.model
        read = held.tokens + (model.context_window or CONTEXT_TOKENS) if held.filled else held.tokens
        # The caller's limit is sent as it is, even where the catalog says that the model has a lower one.
        answer = choices * (asked or _own(model, output_limit))
        if predicted:
            # What the model does not take of it is paid as if it had written it.
            answer += read
        answer = min(answer, _MOST_TOKENS)
        tokens = max(tokens, read + answer)
        prices = model.dearest
        if prices is None or (answers and prices[1] is None):
            unpriced = True
        else:
            # Floats are quick; the dollar's billionth on top is more than they are wrong by.
            cost = (read * prices[0] + answer * (prices[1] or 0.0)) * _ABOVE
            if cost >= dearest:
                dearest = int(cost) + 1
    return Bound(tokens, None if unpriced else min(dearest, _MOST_NANO_USD))


def most_output(x: Asked, candidate: Candidate) -> int:
    """The tokens that a candidate's answers can have at most, all together."""
    if not _answers(x.call):
        return 0
    sizes = given(x)
    return min(sizes.choices * (sizes.output or _own(candidate.model, x.call.output_limit)), _MOST_TOKENS)


def asked_output(call: ModelCall) -> int | None:
    """The caller's own limit of an answer's tokens. Of two the higher one: servers differ in which they go by."""
    body, most = call.body, 0
    for name in _LIMITS.get(call.dialect, ()):
        limit = body.get(name)
        if type(limit) is int and limit > most:
            most = limit
    return most or None


def default_output(x: Asked, chain: Iterable[Candidate]) -> int | None:
    """What to send along as the answer's limit; None where there is one already, or nothing to limit."""
    if not _answers(x.call) or given(x).output:
        return None
    return max((candidate.model.max_output_tokens or OUTPUT_TOKENS) for candidate in chain)


def priced(x: Asked, candidate: Candidate) -> bool:
    """Whether the catalog knows what the call costs there."""
    model = candidate.model
    return model.cost_per_input_token is not None and (not _answers(x.call) or model.cost_per_output_token is not None)


def input_tokens(x: Asked) -> int:
    """What a model of usual size reads at most."""
    held = given(x)
    return held.tokens + CONTEXT_TOKENS if held.filled else held.tokens


def given(x: Asked) -> Given:
    """Worked out once: routing and budgets both ask."""
    if x.derived.given is None:
        x.derived.given = _given(x.call)
    return x.derived.given


def _answers(call: ModelCall) -> bool:
    """Whether the model writes something that has to be paid."""
    return DIALECTS[call.dialect].operation == "chat"


def _given(call: ModelCall) -> Given:
    body = call.body
    # What goes to the provider, with instructions and labels in it and without escapes, not what came.
    raw = _encode(body)
    tokens = _FRAME + len(raw)
    filled = "web_search_options" in body or "mcp_servers" in body
    if tools := body.get("tools"):
        filled = filled or any(_provider_runs(tool.get("type")) for tool in tools)
    if tools or "functions" in body:
        tokens += _ABOUT_TOOLS
    beside = _holds(raw) is not None
    if beside:
        more, files = _beside_text(body, raw)
        tokens, filled = tokens + more, filled or files
    return Given(
        size=len(raw),
        tokens=tokens,
        filled=filled,
        beside=beside,
        output=asked_output(call),
        choices=_whole_number(body.get("n")) or 1,
        predicted="prediction" in body,
    )


def _provider_runs(kind: Any) -> bool:
    return kind not in _CALLERS and not str(kind).startswith(_CALLERS_TOO)


def _beside_text(body: dict[str, Any], raw: bytes) -> tuple[int, bool]:
    """The tokens of images, less the bytes that were counted for theirs; and whether there are other files."""
    tokens, files = 0, False
    of_files = any(word in raw for word in _OF_FILES)
    for each in slots(body):
        if isinstance(each, Unseen):
            tokens -= each.size
            image = each.kind == "image"
            files = files or each.kind in {"audio", "file"}
        else:
            image = each.key in _IMAGES or (each.key in _ADDRESSES and not of_files)
            files = files or each.key in _FILES or (each.key in _ADDRESSES and of_files)
        if image:
            tokens += IMAGE_TOKENS
    return tokens, files


def _own(model: ModelRecord, sent: int | None) -> int:
    """What a model answers at most when the caller says nothing."""
    return min(sent or OUTPUT_TOKENS, model.max_output_tokens or OUTPUT_TOKENS)


def _whole_number(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None
