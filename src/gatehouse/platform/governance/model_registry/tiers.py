"""What a model id says by itself: whose model it is, and the risk tier to begin with.

The tier is a proposal by what a model can do: how it is used is what the risk depends on, and no id tells that. So
nothing is `tier_1` by inference.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from gatehouse.platform.governance.model_registry.states import RiskTier

#: Of models that no record says the provider of.
UNKNOWN_PROVIDER: Final = "unknown"


class Inferred(NamedTuple):
    provider: str
    tier: RiskTier


#: By what a model id begins with; the longest prefix counts.
PREFIXES: Final[Mapping[str, Inferred]] = {
    "gpt-": Inferred("openai", "tier_2"),
    "gpt-3.5": Inferred("openai", "tier_3"),
    "gpt-4o-mini": Inferred("openai", "tier_3"),
    "gpt-4.1-mini": Inferred("openai", "tier_3"),
    "gpt-4.1-nano": Inferred("openai", "tier_3"),
    "gpt-5-mini": Inferred("openai", "tier_3"),
    "gpt-5-nano": Inferred("openai", "tier_3"),
    "chatgpt-": Inferred("openai", "tier_2"),
    "o1": Inferred("openai", "tier_2"),
    "o3": Inferred("openai", "tier_2"),
    "o4": Inferred("openai", "tier_2"),
    "text-embedding-": Inferred("openai", "tier_4"),
    "claude-": Inferred("anthropic", "tier_2"),
    "claude-instant": Inferred("anthropic", "tier_3"),
    "claude-haiku": Inferred("anthropic", "tier_3"),
    "claude-3-haiku": Inferred("anthropic", "tier_3"),
    "claude-3-5-haiku": Inferred("anthropic", "tier_3"),
    "gemini-": Inferred("gemini", "tier_2"),
    "gemini-1.5-flash": Inferred("gemini", "tier_3"),
    "gemini-2.0-flash": Inferred("gemini", "tier_3"),
    "gemini-2.5-flash": Inferred("gemini", "tier_3"),
    "gemini-embedding": Inferred("gemini", "tier_4"),
    "text-embedding-00": Inferred("gemini", "tier_4"),
    "gemma-": Inferred("gemini", "tier_3"),
    "mistral-": Inferred("mistral", "tier_3"),
    "mistral-large": Inferred("mistral", "tier_2"),
    "mistral-medium": Inferred("mistral", "tier_2"),
    "mistral-embed": Inferred("mistral", "tier_4"),
    "magistral-": Inferred("mistral", "tier_2"),
    "ministral-": Inferred("mistral", "tier_3"),
    "codestral-": Inferred("mistral", "tier_3"),
    "open-mistral-": Inferred("mistral", "tier_3"),
    "open-mixtral-": Inferred("mistral", "tier_3"),
    "amazon.": Inferred("bedrock", "tier_3"),
    "amazon.nova-pro": Inferred("bedrock", "tier_2"),
    "amazon.nova-premier": Inferred("bedrock", "tier_2"),
    "amazon.titan-embed": Inferred("bedrock", "tier_4"),
    "anthropic.claude-": Inferred("bedrock", "tier_2"),
    "anthropic.claude-3-haiku": Inferred("bedrock", "tier_3"),
    "cohere.embed-": Inferred("bedrock", "tier_4"),
    "meta.llama": Inferred("bedrock", "tier_3"),
    "llama": Inferred("ollama", "tier_3"),
    "qwen": Inferred("ollama", "tier_3"),
    "nomic-embed-": Inferred("ollama", "tier_4"),
}
_LONGEST_FIRST: Final = sorted(PREFIXES, key=len, reverse=True)


def inferred(model_id: str) -> Inferred | None:
    """None for an id that begins like none that is known. Case does not matter."""
    name = model_id.lower()
    return next((PREFIXES[prefix] for prefix in _LONGEST_FIRST if name.startswith(prefix)), None)
