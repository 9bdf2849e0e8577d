"""Computes upper bounds of a call's tokens and cost before the call is made. Budgets reserve them (docs/budgets.md).

In the vocabularies of models, a token is at least one byte of text. So the number of bytes sent to the provider bounds
the tokens of their text. Images have no such measure, so each image is treated as `IMAGE_TOKENS`. Other files, and
content that the provider looks up itself, may fill the model's context window. The answer is bounded by the caller's
own limit, or else by a limit that the gateway sends.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.dialects import TRAITS
from gatehouse.engine.conversation.dialects.openai_responses.tools import count_functions
from gatehouse.engine.conversation.slots import NonText, slots
from gatehouse.engine.exchange import CallRequest, CallSize, computed_once
from gatehouse.foundation.errors import BadRequest
from gatehouse.policy.budgets import NANO
from gatehouse.policy.catalog import Candidate, ModelRecord

#: Upper bound of the tokens of an image, which is higher than the number that any vendor charges today.
IMAGE_TOKENS: Final = 50_000
#: Lower bound of the bytes of a recording in a token. The lowest bitrate of a codec gives 75, at 10 tokens in a second.
_AUDIO_BYTES_PER_TOKEN: Final = 8
#: Assumed context window of a model whose catalog entry has none.
CONTEXT_TOKENS: Final = 200_000
#: Assumed output limit of a model whose catalog entry has none.
OUTPUT_TOKENS: Final = 16_384
#: Tokens that the protocol adds around messages. In short requests, the bytes of the JSON exceed this number.
_FRAME_TOKENS: Final = 16
#: Tokens of the instructions that vendors add for the use of tools.
_TOOL_INSTRUCTION_TOKENS: Final = 1_000
#: Tokens that the conversion of a custom tool, or of a namespace's tool, to a function adds to the tool.
_CONVERTED_TOOL_TOKENS: Final = 100
#: Dialects whose tools the gateway converts or leaves out, so that no provider runs one.
_CONVERTED_TOOLS: Final = frozenset({"openai_responses", "openai_token_count", "openai_compaction"})
#: Upper limits of a bound. No call takes more, and PostgreSQL can sum many such values.
_MAX_TOKENS: Final = 10**12
_MAX_NANO_USD: Final = 10**15
#: Nano dollars in a dollar, rounded up by more than the error of floats.
_NANO_ROUNDED_UP: Final = NANO * (1 + 1e-12)
#: Fields that limit the output, by dialect. A field of another dialect has no effect.
_OUTPUT_LIMIT_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "openai_chat": ("max_completion_tokens", "max_tokens"),
    "openai_completions": ("max_tokens",),
    "openai_responses": ("max_output_tokens",),
    "anthropic_messages": ("max_tokens",),
}
#: Ends of the names of fields that contain binary data or refer to content that is not sent. No JSON text contains
#: these bytes, because quotation marks in it are escaped. One search that looks back from the end of each name is much
#: faster than one search for each name.
_NONTEXT_FIELD_ENDS: Final = (
    b'url":', b'uri":', b'file_id":', b'"data":', b'file_data":', b'b64_json":', b'"image":', b'"video":', b'"audio":',
)  # fmt: skip
_encode: Final = msgspec.json.Encoder().encode
_find_nontext: Final = re.compile(
    b'":(?:' + b"|".join(b"(?<=" + name + b")" for name in _NONTEXT_FIELD_ENDS) + b")"
).search
_IMAGE_KEYS: Final = frozenset({"image_url", "image"})
#: Keys of the address of an image or of another file. The enclosing part tells which of the two it is.
_ADDRESS_KEYS: Final = frozenset({"url", "uri"})
_FILE_KEYS: Final = frozenset({"file_url", "file_id", "video", "audio"})
_FILE_MARKS: Final = (b'"document"', b'"file', b'"input_file', b'"video', b'"audio')
#: Types of tools that the caller runs.
_CALLER_TOOLS: Final = frozenset({None, "function", "custom"})
_CALLER_TOOL_PREFIXES: Final = ("bash_", "text_editor_", "computer_", "memory_")


class PriceUnknown(BadRequest):
    """The catalog has no price for a call to which a limit in dollars applies: 400."""

    code = "price_unknown"

    @classmethod
    def of(cls, candidate: Candidate, limit: str) -> "PriceUnknown":
        """Return the error. `limit` begins the message, for example "A cost cap"."""
        return cls(
            f"{limit} is active, and the catalog has no price for {candidate.provider.id}/"
            f"{candidate.model.model_id}. An administrator can set cost_per_input_token and cost_per_output_token."
        )


class Bound(msgspec.Struct, frozen=True, gc=False):
    """The most that a call can use. `nano_usd` is None if a candidate has no price."""

    tokens: int
    nano_usd: int | None


def bound(x: CallRequest, chain: Iterable[Candidate], output_limit: int | None) -> Bound:
    """Return the bound of a call over its candidates: the highest number of tokens, and the highest cost.
    `output_limit` is the limit that the gateway sends if the caller sets none (`default_output`)."""
    traits = TRAITS[x.call.dialect]
    if traits.is_free:
        return Bound(0, 0)
    size, answers = call_size(x), traits.has_output_tokens
    caller_limit, choices, has_prediction = size.output_limit, size.choices if answers else 0, size.has_prediction
    tokens, max_nano_usd = 0, 0
    unpriced = False
    for candidate in chain:
        model = candidate.model
        read = size.max_tokens + (model.context_window or CONTEXT_TOKENS) if size.fills_context else size.max_tokens
        # The gateway sends the caller's limit unchanged, even if the catalog has a lower limit for the model.
        written = choices * (caller_limit or _model_limit(model, output_limit))
        if has_prediction:
            # The provider charges predicted tokens that the model rejects as output.
            written += read
        written = min(written, _MAX_TOKENS)
        tokens = max(tokens, read + written)
        prices = model.dearest
        if prices is None or (answers and prices[1] is None):
            unpriced = True
        else:
            # Floats are fast. The factor and the added billionth of a dollar exceed their error.
            cost = (read * prices[0] + written * (prices[1] or 0.0)) * _NANO_ROUNDED_UP
            if cost >= max_nano_usd:
                max_nano_usd = int(cost) + 1
    return Bound(tokens, None if unpriced else min(max_nano_usd, _MAX_NANO_USD))


def max_output(x: CallRequest, candidate: Candidate, output_limit: int | None) -> int:
    """Return the highest number of tokens that all answers of a candidate together can have. `output_limit` is the
    limit that the gateway sends if the caller sets none."""
    if not TRAITS[x.call.dialect].has_output_tokens:
        return 0
    size = call_size(x)
    return min(size.choices * (size.output_limit or _model_limit(candidate.model, output_limit)), _MAX_TOKENS)


def caller_output_limit(call: ModelCall) -> int | None:
    """Return the caller's own limit on the tokens of an answer. If the body has two limits, returns the higher one,
    because servers differ in the limit that they apply."""
    body, highest = call.body, 0
    for name in _OUTPUT_LIMIT_FIELDS.get(call.dialect, ()):
        limit = body.get(name)
        if type(limit) is int and limit > highest:
            highest = limit
    return highest or None


def count_choices(call: ModelCall) -> int:
    """Return the number of answers that the call requests and the provider charges."""
    body = call.body
    choices = _positive_integer(body.get("n")) or 1
    if call.dialect == "openai_completions":
        prompts = len(body["prompt"]) if isinstance(body["prompt"], list) else 1
        return prompts * max(choices, _positive_integer(body.get("best_of")) or 1)
    return choices


def default_output(x: CallRequest, chain: Iterable[Candidate]) -> int | None:
    """Return the output limit that the gateway sends. Returns None if the caller has set a limit, or if the call has no
    field for it."""
    if not TRAITS[x.call.dialect].has_output_limit or call_size(x).output_limit:
        return None
    return max((candidate.model.max_output_tokens or OUTPUT_TOKENS) for candidate in chain)


def priced(x: CallRequest, candidate: Candidate) -> bool:
    """Return whether the catalog has the prices of this candidate that the call needs."""
    traits, model = TRAITS[x.call.dialect], candidate.model
    if traits.is_free:
        return True
    has_input_price = model.cost_per_input_token is not None
    return has_input_price and (not traits.has_output_tokens or model.cost_per_output_token is not None)


def max_input_tokens(x: CallRequest) -> int:
    """Return the highest number of input tokens for a model with the default context window."""
    size = call_size(x)
    return size.max_tokens + CONTEXT_TOKENS if size.fills_context else size.max_tokens


@computed_once
def call_size(x: CallRequest) -> CallSize:
    """Return the call's size, for routing and budgets."""
    call, body = x.call, x.call.body
    # The size is measured on the body that is sent to the provider, which has instructions and labels and no escapes.
    raw = _encode(body)
    tokens = _FRAME_TOKENS + len(raw)
    fills_context = "web_search_options" in body or "mcp_servers" in body
    tools = body.get("tools")
    if call.dialect in _CONVERTED_TOOLS:
        tools = count_functions(body)
        tokens += tools * _CONVERTED_TOOL_TOKENS
        fills_context = fills_context or call.options.fills_context
    elif tools:
        fills_context = fills_context or any(_provider_runs(tool.get("type")) for tool in tools)
    if tools or "functions" in body:
        tokens += _TOOL_INSTRUCTION_TOKENS
    for file in call.files:
        # A recording has far fewer tokens than an eighth of its bytes.
        tokens += len(file.data) // _AUDIO_BYTES_PER_TOKEN if file.name == "file" else IMAGE_TOKENS
    has_nontext = _find_nontext(raw) is not None
    if has_nontext:
        image_tokens, has_files = _nontext(body, raw)
        tokens, fills_context = tokens + image_tokens, fills_context or has_files
    return CallSize(
        json_bytes=len(raw),
        max_tokens=tokens,
        fills_context=fills_context,
        has_nontext=has_nontext,
        output_limit=caller_output_limit(call),
        choices=count_choices(call),
        has_prediction="prediction" in body,
    )


def _provider_runs(tool_type: Any) -> bool:
    if tool_type is not None and not isinstance(tool_type, str):
        # The provider refuses such a type, or interprets it in its own way.
        return True
    return tool_type not in _CALLER_TOOLS and not str(tool_type).startswith(_CALLER_TOOL_PREFIXES)


def _nontext(body: dict[str, Any], raw: bytes) -> tuple[int, bool]:
    """Return the tokens of images, minus the bytes that were already counted for them, and whether there are other
    files."""
    tokens, has_files = 0, False
    has_file_marks = any(mark in raw for mark in _FILE_MARKS)
    for slot in slots(body):
        if isinstance(slot, NonText):
            tokens -= slot.size
            is_image = slot.kind == "image"
            has_files = has_files or slot.kind in {"audio", "file"}
        else:
            is_image = slot.key in _IMAGE_KEYS or (slot.key in _ADDRESS_KEYS and not has_file_marks)
            has_files = has_files or slot.key in _FILE_KEYS or (slot.key in _ADDRESS_KEYS and has_file_marks)
        if is_image:
            tokens += IMAGE_TOKENS
    return tokens, has_files


def _model_limit(model: ModelRecord, sent_limit: int | None) -> int:
    """Return the highest number of tokens of an answer of this model if the caller sets no limit."""
    return min(sent_limit or OUTPUT_TOKENS, model.max_output_tokens or OUTPUT_TOKENS)


def _positive_integer(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None
