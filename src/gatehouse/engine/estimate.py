"""What a call needs and will probably take, before it is made: what routing chooses and caps by (reference 3, Cost
routing policy).

`bound.py` says what a call can take at most; here is what is likely. Four bytes are a token: measured with OpenAI's
o200k vocabulary it is 4.3 for English and for Python, 3.7 for Markdown, 4.5 for German, 2.7 for JSON. `tokenizers`
counts exactly where a vocabulary is at hand.
"""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from gatehouse.engine.bound import asked_output, given
from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.slots import Slot, Unseen, slots
from gatehouse.engine.exchange import Asked, Wants
from gatehouse.policy.records import ModelRecord
from gatehouse.policy.routing import NEEDS

BYTES_A_TOKEN: Final = 4
#: What an image, a recording or a file is likely to take.
UNSEEN_TOKENS: Final = 1_000
#: What an answer is likely to take whose caller gives no limit.
EXPECTED_OUTPUT: Final = 500
#: More than any answer takes, and little enough to be multiplied by a price.
_MOST_TOKENS: Final = 10**12
#: Fields that name a file instead of sending it.
_NAMING: Final = frozenset({"url", "image_url", "file_url", "file_id", "uri"})
_IMAGES: Final = frozenset({"image", "image_url", "input_image"})
_JSON_FORMATS: Final = frozenset({"json_object", "json_schema"})


def wants(x: Asked) -> Wants:
    """What routing goes by, without counting tokens. Worked out once."""
    if x.derived.wants is None:
        x.derived.wants = _wants(x)
    return x.derived.wants


def _wants(x: Asked) -> Wants:
    body, held = x.call.body, given(x)
    embeds = DIALECTS[x.call.dialect].operation == "embeddings"
    needs = NEEDS["streaming"] if x.call.stream else 0
    if "tools" in body or "functions" in body:
        needs |= _tools(body)
    if "response_format" in body or "text" in body:
        needs |= _format(body)
    if held.beside and _has_image(body):
        needs |= NEEDS["vision"]
    tokens = _looked_through(body) if held.beside else -(-held.size // BYTES_A_TOKEN)
    choices = answers_asked_for(body)
    return Wants(
        input_tokens=tokens,
        output_tokens=0 if embeds else min(_expected(x.call) * choices, _MOST_TOKENS),
        needs=needs,
        embeds=embeds,
        choices=choices,
    )


def estimate(model: ModelRecord, wanted: Wants) -> Decimal | None:
    """USD, None where the catalog lacks a price that the call needs."""
    output = wanted.output_tokens
    if model.max_output_tokens:
        output = min(output, model.max_output_tokens * wanted.choices)
    if model.cost_per_input_token is None or (output and model.cost_per_output_token is None):
        return None
    return model.cost_per_input_token * wanted.input_tokens + (model.cost_per_output_token or Decimal(0)) * output


def texts(body: dict[str, Any]) -> Iterator[str]:
    """All that a model reads as text."""
    return (slot.text for slot in slots(body) if isinstance(slot, Slot) and not slot.is_sealed)


def _expected(call: ModelCall) -> int:
    asked = asked_output(call)
    return EXPECTED_OUTPUT if asked is None else asked


def answers_asked_for(body: dict[str, Any]) -> int:
    asked = body.get("n")
    return asked if type(asked) is int and asked > 1 else 1


def unseen(body: dict[str, Any]) -> int:
    """Images and the like, sent or only named."""
    return sum(isinstance(each, Unseen) or each.key in _NAMING for each in slots(body))


def _looked_through(body: dict[str, Any]) -> int:
    size = sum(len(text.encode()) for text in texts(body))
    return -(-size // BYTES_A_TOKEN) + unseen(body) * UNSEEN_TOKENS


def _tools(body: dict[str, Any]) -> int:
    tools = body.get("tools")
    kinds = [str(tool.get("type")) for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    runs_code = sum(kind.startswith(("code_interpreter", "code_execution")) for kind in kinds)
    needs = NEEDS["code_execution"] if runs_code else 0
    # A tool that the caller runs.
    return needs | NEEDS["function_calling"] if len(kinds) > runs_code or body.get("functions") else needs


def _format(body: dict[str, Any]) -> int:
    text = body.get("text")
    asked = body.get("response_format") or (text.get("format") if isinstance(text, dict) else None)
    wanted = isinstance(asked, dict) and asked.get("type") in _JSON_FORMATS
    return NEEDS["json_mode"] if wanted else 0


def _has_image(body: dict[str, Any]) -> bool:
    waiting: list[Any] = [body.get("messages"), body.get("input"), body.get("system")]
    while waiting:
        held = waiting.pop()
        if isinstance(held, list):
            waiting += held
        elif isinstance(held, dict):
            if held.get("type") in _IMAGES:
                return True
            waiting.append(held.get("content"))
    return False
