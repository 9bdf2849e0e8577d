"""Keeps a conversation at one deployment, so that the provider's prompt cache contains its beginning.

The deployment follows from a hash of the conversation and of each deployment's name (weighted rendezvous hashing). No
table is needed, all workers agree, and a deployment that is added or removed moves only its own share.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.dialects.anthropic_messages.content import is_billing_header
from gatehouse.engine.exchange import CallRequest
from gatehouse.policy.aliases import Deployment

#: Bytes of the conversation's beginning that are hashed.
_MAX_HASHED_BYTES: Final = 64 * 1024
_KEY_BYTES: Final = 16
#: Fields with the text of a call. A call has one of them.
_TEXT_FIELDS: Final = ("messages", "input", "prompt", "query")

_encode = msgspec.json.encode


def conversation_key(x: CallRequest) -> bytes | None:
    """Return the key of the conversation, or None if the call has no text that identifies one. Every turn of a
    conversation has the same key: it is derived from the caller and from `prompt_cache_key`, or from the instructions
    and the messages up to the first one of the user, without what agents change in each turn."""
    caller, body = x.identified.caller, x.call.body
    if x.call.is_form:
        # The text field of an upload is a hint for the transcription, and often the same for all uploads.
        return None
    digest = hashlib.blake2b(digest_size=_KEY_BYTES, key=x.identified.policy.tenant_id.bytes)
    digest.update(caller.actor_id.encode())
    cache_key = body.get("prompt_cache_key")
    if isinstance(cache_key, str) and cache_key:
        digest.update(b"\0key\0" + cache_key.encode("utf-8", "replace")[:_MAX_HASHED_BYTES])
        return digest.digest()
    if not any(body.get(field) for field in _TEXT_FIELDS):
        return None
    remaining = _MAX_HASHED_BYTES
    for part in _beginning(body):
        encoded = _encode(_stable(part))[:remaining]
        digest.update(b"\0" + encoded)
        remaining -= len(encoded)
        if remaining <= 0:
            break
    return digest.digest()


def _stable(part: Any) -> Any:
    """Return instructions or a message without what agents change in each turn although the text stays the same: marks
    for the cache, a list instead of a single text, and Claude Code's text for Anthropic's billing."""
    if isinstance(part, list):
        blocks = [_stable(block) for block in part if not is_billing_header(block)]
        return blocks[0]["text"] if len(blocks) == 1 and _is_text(blocks[0]) else blocks
    if not isinstance(part, dict):
        return part
    stable = {name: value for name, value in part.items() if name != "cache_control"}
    if isinstance(stable.get("content"), list):
        stable["content"] = _stable(stable["content"])
    return stable


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and block.keys() == {"type", "text"} and isinstance(block["text"], str)


def by_affinity(deployments: Sequence[Deployment], key: bytes) -> list[Deployment]:
    """Return the deployments in the conversation's order of preference. Each deployment comes first for a share of all
    conversations that is proportional to its weight."""
    return sorted(deployments, key=lambda deployment: _score(deployment, key))


def _score(deployment: Deployment, key: bytes) -> float:
    """Return a value that is exponentially distributed with the weight as its rate; the lowest value is first."""
    digest = hashlib.blake2b(deployment.key.encode(), digest_size=8, key=key).digest()
    uniform = (int.from_bytes(digest) + 1) / (2**64 + 1)
    exponential = -math.log(uniform)
    # Deployments with the weight zero follow all others, in an order of their own.
    return exponential / deployment.weight if deployment.weight else 1e6 + exponential


def _beginning(body: dict[str, Any]) -> Iterator[Any]:
    """Yield the instructions, and the messages up to the first one of the user."""
    for field in ("system", "instructions"):
        if body.get(field):
            yield body[field]
    messages = next((body[field] for field in _TEXT_FIELDS if body.get(field)), None)
    if not isinstance(messages, list):
        yield messages
        return
    for message in messages:
        yield message
        if isinstance(message, dict) and message.get("role") == "user":
            return
