"""Estimates the needs and the likely cost of a call before it is made. Routing and cost caps use the estimate
(docs/cost-routing.md).

`bound.py` computes the most that a call can use; this module computes the likely amount. Four bytes are treated as one
token. Measured with OpenAI's o200k vocabulary, a token has 4.3 bytes of English or Python, 3.7 of Markdown, 4.5 of
German, and 2.7 of JSON. `tokenizers` counts exactly if a vocabulary is installed.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.decoding.optional_fields import word
from gatehouse.engine.conversation.dialects import TRAITS
from gatehouse.engine.conversation.slots import NonText, Slot, slots
from gatehouse.engine.exchange import CallRequest, RoutingNeeds, computed_once
from gatehouse.engine.money.bound import call_size, caller_output_limit, count_choices
from gatehouse.policy.catalog import ModelRecord
from gatehouse.policy.routing import CAPABILITY_BITS

BYTES_A_TOKEN: Final = 4
#: Likely tokens of an image, a recording or a file.
NONTEXT_TOKENS: Final = 1_000
#: Likely tokens of an answer whose caller sets no limit.
EXPECTED_OUTPUT_TOKENS: Final = 500
#: Upper limit of an estimate. No answer has more tokens, and the number can be multiplied by a price.
_MAX_TOKENS: Final = 10**12
#: Fields that refer to a file instead of containing it.
_REFERENCE_KEYS: Final = frozenset({"url", "image_url", "file_url", "file_id", "uri"})
_IMAGE_TYPES: Final = frozenset({"image", "image_url", "input_image"})
_JSON_FORMATS: Final = frozenset({"json_object", "json_schema"})


@computed_once
def routing_needs(x: CallRequest) -> RoutingNeeds:
    """Return the needs that the host has described, or the call's needs with estimated input tokens."""
    described = x.identified.host.routing_needs
    if described is not None:
        return described
    body, size = x.call.body, call_size(x)
    operation = TRAITS[x.call.dialect]
    needs = CAPABILITY_BITS["streaming"] if x.call.stream else 0
    if "tools" in body or "functions" in body:
        needs |= _tools(body)
    if "response_format" in body or "text" in body:
        needs |= _format(body)
    if size.has_nontext and _has_image(body):
        needs |= CAPABILITY_BITS["vision"]
    tokens = _input_tokens(body) if size.has_nontext else -(-size.json_bytes // BYTES_A_TOKEN)
    choices = count_choices(x.call)
    return RoutingNeeds(
        input_tokens=tokens,
        output_tokens=min(_expected_output(x.call) * choices, _MAX_TOKENS) if operation.has_output_tokens else 0,
        needs=needs,
        use=operation.use,
        choices=choices,
    )


def estimate(model: ModelRecord, needs: RoutingNeeds) -> Decimal | None:
    """Return the estimated cost in USD, or None if the catalog lacks a price that the call needs."""
    output = needs.output_tokens
    if model.max_output_tokens:
        output = min(output, model.max_output_tokens * needs.choices)
    if model.cost_per_input_token is None or (output and model.cost_per_output_token is None):
        return None
    return model.cost_per_input_token * needs.input_tokens + (model.cost_per_output_token or Decimal(0)) * output


def texts(body: dict[str, Any]) -> Iterator[str]:
    """Yield the texts of the body that a model reads."""
    return (slot.text for slot in slots(body) if isinstance(slot, Slot) and not slot.is_sealed)


def _expected_output(call: ModelCall) -> int:
    limit = caller_output_limit(call)
    return EXPECTED_OUTPUT_TOKENS if limit is None else limit


def count_nontext(body: dict[str, Any]) -> int:
    """Return the number of images, recordings and files that the body contains or refers to."""
    return sum(isinstance(slot, NonText) or slot.key in _REFERENCE_KEYS for slot in slots(body))


def _input_tokens(body: dict[str, Any]) -> int:
    text_bytes = sum(len(text.encode()) for text in texts(body))
    return -(-text_bytes // BYTES_A_TOKEN) + count_nontext(body) * NONTEXT_TOKENS


def _tools(body: dict[str, Any]) -> int:
    tools = body.get("tools")
    types = [str(tool.get("type")) for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    code_tools = sum(tool_type.startswith(("code_interpreter", "code_execution")) for tool_type in types)
    needs = CAPABILITY_BITS["code_execution"] if code_tools else 0
    # The caller runs all other tools.
    return needs | CAPABILITY_BITS["function_calling"] if len(types) > code_tools or body.get("functions") else needs


def _format(body: dict[str, Any]) -> int:
    text = body.get("text")
    response_format = body.get("response_format") or (text.get("format") if isinstance(text, dict) else None)
    is_json = isinstance(response_format, dict) and word(response_format.get("type")) in _JSON_FORMATS
    return CAPABILITY_BITS["json_mode"] if is_json else 0


def _has_image(body: dict[str, Any]) -> bool:
    pending: list[Any] = [body.get("messages"), body.get("input"), body.get("system")]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending += value
        elif isinstance(value, dict):
            if word(value.get("type")) in _IMAGE_TYPES:
                return True
            pending.append(value.get("content"))
    return False
