"""The dialects of clients by name. Providers use some of them too."""

from typing import Final

from gatehouse.engine.conversation.dialect import Dialect, PassingDialect
from gatehouse.engine.conversation.dialects.anthropic_messages import AnthropicMessages
from gatehouse.engine.conversation.dialects.cohere_rerank import CohereRerank
from gatehouse.engine.conversation.dialects.openai_audio import OpenAISpeech, OpenAITranscriptions, OpenAITranslations
from gatehouse.engine.conversation.dialects.openai_chat import OpenAIChat
from gatehouse.engine.conversation.dialects.openai_compaction import OpenAICompaction
from gatehouse.engine.conversation.dialects.openai_completions import OpenAICompletions
from gatehouse.engine.conversation.dialects.openai_embeddings import OpenAIEmbeddings
from gatehouse.engine.conversation.dialects.openai_images import (
    OpenAIImageEdits,
    OpenAIImageGeneration,
    OpenAIImageVariations,
)
from gatehouse.engine.conversation.dialects.openai_kept_response import OpenAIKeptResponse
from gatehouse.engine.conversation.dialects.openai_moderations import OpenAIModerations
from gatehouse.engine.conversation.dialects.openai_responses import OpenAIResponses
from gatehouse.engine.conversation.dialects.token_counts import AnthropicTokenCount, OpenAITokenCount
from gatehouse.engine.conversation.operations import OPERATIONS, OperationTraits

#: dialects of the Responses API
NATIVE: Final[dict[str, OpenAIResponses]] = {
    dialect.name: dialect for dialect in (OpenAIResponses(), OpenAICompaction(), OpenAITokenCount())
}
_PASSING_DIALECTS: tuple[PassingDialect, ...] = (
    OpenAIChat(),
    AnthropicMessages(),
    OpenAICompletions(),
    OpenAIEmbeddings(),
    OpenAIModerations(),
    CohereRerank(),
    OpenAIImageGeneration(),
    OpenAIImageEdits(),
    OpenAIImageVariations(),
    OpenAITranscriptions(),
    OpenAITranslations(),
    OpenAISpeech(),
    AnthropicTokenCount(),
    *NATIVE.values(),
)
_CLIENT_DIALECTS: tuple[Dialect, ...] = (OpenAIKeptResponse(),)

PASSING: Final[dict[str, PassingDialect]] = {dialect.name: dialect for dialect in _PASSING_DIALECTS}
DIALECTS: Final[dict[str, Dialect]] = {**PASSING, **{dialect.name: dialect for dialect in _CLIENT_DIALECTS}}
#: the traits of each dialect's operation
TRAITS: Final[dict[str, OperationTraits]] = {name: OPERATIONS[dialect.operation] for name, dialect in DIALECTS.items()}
