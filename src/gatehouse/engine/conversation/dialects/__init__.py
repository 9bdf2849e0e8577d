"""All dialects by name. Clients use all of them; providers use some of them too."""

from typing import Final

from gatehouse.engine.conversation.dialect import Dialect, PassingDialect
from gatehouse.engine.conversation.dialects.anthropic_messages import AnthropicMessages
from gatehouse.engine.conversation.dialects.openai_chat import OpenAIChat
from gatehouse.engine.conversation.dialects.openai_embeddings import OpenAIEmbeddings
from gatehouse.engine.conversation.dialects.openai_responses import OpenAIResponses
from gatehouse.engine.conversation.dialects.token_counts import AnthropicTokenCount, OpenAITokenCount

_PASSING_DIALECTS: tuple[PassingDialect, ...] = (
    OpenAIChat(),
    AnthropicMessages(),
    OpenAIEmbeddings(),
    AnthropicTokenCount(),
)
_CLIENT_DIALECTS: tuple[Dialect, ...] = (OpenAIResponses(), OpenAITokenCount())

PASSING: Final[dict[str, PassingDialect]] = {dialect.name: dialect for dialect in _PASSING_DIALECTS}
DIALECTS: Final[dict[str, Dialect]] = {**PASSING, **{dialect.name: dialect for dialect in _CLIENT_DIALECTS}}
