"""Infers an initial risk tier from a model's id.

The tier is a proposal that is based on the model's capability. The risk depends on the use of the model, which the id
does not show, so `tier_1` is never inferred.
"""

from collections.abc import Mapping
from typing import Final

from gatehouse.platform.governance.model_registry.schemas import RiskTier

#: Tier by prefix of the model id. The longest matching prefix applies.
TIERS_BY_PREFIX: Final[Mapping[str, RiskTier]] = {
    "gpt-": "tier_2",
    "gpt-3.5": "tier_3",
    "gpt-4o-mini": "tier_3",
    "gpt-4.1-mini": "tier_3",
    "gpt-4.1-nano": "tier_3",
    "gpt-5-mini": "tier_3",
    "gpt-5-nano": "tier_3",
    "chatgpt-": "tier_2",
    "o1": "tier_2",
    "o3": "tier_2",
    "o4": "tier_2",
    "text-embedding-": "tier_4",
    "claude-": "tier_2",
    "claude-instant": "tier_3",
    "claude-haiku": "tier_3",
    "claude-3-haiku": "tier_3",
    "claude-3-5-haiku": "tier_3",
    "gemini-": "tier_2",
    "gemini-1.5-flash": "tier_3",
    "gemini-2.0-flash": "tier_3",
    "gemini-2.5-flash": "tier_3",
    "gemini-embedding": "tier_4",
    "text-embedding-00": "tier_4",
    "gemma-": "tier_3",
    "mistral-": "tier_3",
    "mistral-large": "tier_2",
    "mistral-medium": "tier_2",
    "mistral-embed": "tier_4",
    "magistral-": "tier_2",
    "ministral-": "tier_3",
    "codestral-": "tier_3",
    "open-mistral-": "tier_3",
    "open-mixtral-": "tier_3",
    "amazon.": "tier_3",
    "amazon.nova-pro": "tier_2",
    "amazon.nova-premier": "tier_2",
    "amazon.titan-embed": "tier_4",
    "anthropic.claude-": "tier_2",
    "anthropic.claude-3-haiku": "tier_3",
    "cohere.embed-": "tier_4",
    "meta.llama": "tier_3",
    "llama": "tier_3",
    "qwen": "tier_3",
    "nomic-embed-": "tier_4",
}
_PREFIXES_LONGEST_FIRST: Final = sorted(TIERS_BY_PREFIX, key=len, reverse=True)


def infer_tier(model_id: str) -> RiskTier:
    """Return the tier of a model id, ignoring case, or `unclassified` if no prefix matches."""
    name = model_id.lower()
    return next(
        (TIERS_BY_PREFIX[prefix] for prefix in _PREFIXES_LONGEST_FIRST if name.startswith(prefix)), "unclassified"
    )
