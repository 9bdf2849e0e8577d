"""Every kind of provider by name."""

from typing import Final

from gatehouse.engine.providers.anthropic import Anthropic
from gatehouse.engine.providers.byoe import Byoe
from gatehouse.engine.providers.kind import Kind
from gatehouse.engine.providers.ollama import Ollama
from gatehouse.engine.providers.openai import OpenAI
from gatehouse.engine.providers.openai_compatible import OpenAICompatible
from gatehouse.engine.providers.sandbox import Sandbox

_ALL: tuple[Kind, ...] = (Anthropic(), Byoe(), Ollama(), OpenAI(), OpenAICompatible(), Sandbox())
KINDS: Final[dict[str, Kind]] = {kind.name: kind for kind in _ALL}
