"""Converts items with reasoning.

The text of the reasoning is the summary of an item. The signature of a Claude model is the item's `encrypted_content`,
after a prefix of base64 characters. Clients send it back, and only Claude models receive it.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from gatehouse.engine.conversation.form import Reasoning

#: the value of `include` that requests signatures
ENCRYPTED: Final = "reasoning.encrypted_content"
#: prefixes of signatures, and of encrypted reasoning, of Claude models
_SIGNED: Final = "GatehouseClaudeSignature"
_SEALED: Final = "GatehouseClaudeEncrypted"


class ShownReasoning(NamedTuple):
    """Whether a client expects the text of the reasoning, and whether it expects the signature."""

    texts: bool
    signatures: bool


def shown_reasoning(body: Mapping[str, Any]) -> ShownReasoning:
    """Return what the client expects, as its request indicates."""
    reasoning = body.get("reasoning") or {}
    texts = any(reasoning.get(field) is not None for field in ("summary", "generate_summary"))
    return ShownReasoning(texts, signatures=ENCRYPTED in (body.get("include") or ()))


def is_shown(reasoning: Reasoning, shown: ShownReasoning) -> bool:
    """Return whether the client expects the reasoning. The text of signed reasoning is always shown, because the
    provider checks it with the signature."""
    return shown.texts or (shown.signatures and reasoning.signature is not None)


def reasoning_item(id: str, reasoning: Reasoning, shown: ShownReasoning) -> dict[str, Any]:
    item: dict[str, Any] = {"id": f"rs_{id}", "type": "reasoning", "summary": summary(reasoning.text)}
    if shown.signatures and reasoning.signature is not None:
        item["encrypted_content"] = (_SEALED if reasoning.is_sealed else _SIGNED) + reasoning.signature
    return item


def summary(text: str) -> list[dict[str, Any]]:
    return [summary_part(text)] if text else []


def summary_part(text: str) -> dict[str, Any]:
    return {"type": "summary_text", "text": text}


def read_reasoning(item: Mapping[str, Any]) -> Reasoning | None:
    """Return the reasoning in an item of an earlier answer, or None if it has no signature that can be converted."""
    encrypted = item.get("encrypted_content")
    if not is_converted(item) or not isinstance(encrypted, str):
        return None
    parts = item.get("summary")
    texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    is_sealed = encrypted.startswith(_SEALED)
    return Reasoning(
        text="".join(text for text in texts if isinstance(text, str)),
        signature=encrypted.removeprefix(_SEALED if is_sealed else _SIGNED),
        is_sealed=is_sealed,
    )


def is_converted(item: Mapping[str, Any]) -> bool:
    """Return whether the item has the reasoning of another provider, which no provider with the Responses API reads."""
    encrypted = item.get("encrypted_content")
    return isinstance(encrypted, str) and encrypted.startswith((_SIGNED, _SEALED))
