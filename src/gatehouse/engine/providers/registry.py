"""All kinds of providers, and the dialects that they speak, by name."""

from typing import Final

from gatehouse.engine.conversation.dialect import ProviderDialect
from gatehouse.engine.conversation.dialects import PASSING
from gatehouse.engine.providers.anthropic import Anthropic
from gatehouse.engine.providers.azure_openai import AzureOpenAI
from gatehouse.engine.providers.bedrock import Bedrock
from gatehouse.engine.providers.bedrock.dialect import BedrockConverse
from gatehouse.engine.providers.bedrock.embeddings import BedrockEmbed
from gatehouse.engine.providers.byoe import Byoe
from gatehouse.engine.providers.gemini import Gemini
from gatehouse.engine.providers.gemini.dialect import GeminiEmbed, GeminiGenerate
from gatehouse.engine.providers.kind import ProviderKind
from gatehouse.engine.providers.mistral import Mistral
from gatehouse.engine.providers.mistral.dialect import MistralChat, MistralEmbeddings
from gatehouse.engine.providers.ollama import Ollama
from gatehouse.engine.providers.openai import OpenAI
from gatehouse.engine.providers.openai_compatible import OpenAICompatible
from gatehouse.engine.providers.sandbox import Sandbox
from gatehouse.engine.providers.token_counts import CONVERTED_COUNTS
from gatehouse.engine.providers.vertex_ai import VertexAI
from gatehouse.engine.providers.vertex_ai.embeddings import VertexGeminiEmbed, VertexPredict

_ALL_KINDS: tuple[ProviderKind, ...] = (
    Anthropic(),
    AzureOpenAI(),
    Bedrock(),
    Byoe(),
    Gemini(),
    Mistral(),
    Ollama(),
    OpenAI(),
    OpenAICompatible(),
    Sandbox(),
    VertexAI(),
)
KINDS: Final[dict[str, ProviderKind]] = {kind.name: kind for kind in _ALL_KINDS}

#: Dialects that no client speaks, each in its kind's folder.
_PROVIDER_DIALECTS: tuple[ProviderDialect, ...] = (
    BedrockConverse(),
    BedrockEmbed(),
    GeminiEmbed(),
    GeminiGenerate(),
    MistralChat(),
    MistralEmbeddings(),
    VertexGeminiEmbed(),
    VertexPredict(),
    *CONVERTED_COUNTS.values(),
)
SPOKEN: Final[dict[str, ProviderDialect]] = {**PASSING, **{dialect.name: dialect for dialect in _PROVIDER_DIALECTS}}
