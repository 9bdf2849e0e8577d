"""Every dialect by name: how a client speaks to the gateway, and how the gateway speaks to a provider."""

from typing import Final

from gatehouse.engine.conversation.dialect import Dialect
from gatehouse.engine.conversation.dialects.anthropic_messages import AnthropicMessages
from gatehouse.engine.conversation.dialects.openai_chat import OpenAIChat
from gatehouse.engine.conversation.dialects.openai_embeddings import OpenAIEmbeddings

_ALL: tuple[Dialect, ...] = (OpenAIChat(), AnthropicMessages(), OpenAIEmbeddings())
DIALECTS: Final[dict[str, Dialect]] = {dialect.name: dialect for dialect in _ALL}
