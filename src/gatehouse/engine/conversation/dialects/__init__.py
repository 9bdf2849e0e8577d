"""Every dialect by name: how a client speaks to the gateway. Some are how the gateway speaks to a provider, too."""

from typing import Final

from gatehouse.engine.conversation.dialect import Dialect, PassingDialect
from gatehouse.engine.conversation.dialects.anthropic_messages import AnthropicMessages
from gatehouse.engine.conversation.dialects.openai_chat import OpenAIChat
from gatehouse.engine.conversation.dialects.openai_embeddings import OpenAIEmbeddings
from gatehouse.engine.conversation.dialects.openai_responses import OpenAIResponses

_BOTH: tuple[PassingDialect, ...] = (OpenAIChat(), AnthropicMessages(), OpenAIEmbeddings())
_CLIENTS: tuple[Dialect, ...] = (OpenAIResponses(),)

PASSING: Final[dict[str, PassingDialect]] = {dialect.name: dialect for dialect in _BOTH}
DIALECTS: Final[dict[str, Dialect]] = {**PASSING, **{dialect.name: dialect for dialect in _CLIENTS}}
