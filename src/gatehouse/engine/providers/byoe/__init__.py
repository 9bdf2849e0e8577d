"""Bring your own endpoint: a customer's server with the request format of OpenAI or Anthropic (docs/providers.md)."""

from collections.abc import Mapping, Sequence
from typing import Final

from gatehouse.engine.providers.kind import Endpoint, ProviderModel, ProviderNotConfigured, ProviderTarget
from gatehouse.engine.providers.wires import OPTIONAL_API_KEY, AnthropicWire, OpenAIWire, Wire
from gatehouse.foundation.outbound import Outbound
from gatehouse.policy.catalog import ProviderConfig, ProviderRecord

FORMATS: Final[Mapping[str, Wire]] = {"openai": OpenAIWire(), "anthropic": AnthropicWire()}


class Byoe(Wire):
    name = "byoe"
    title = "Own endpoint"
    type = "byoe"
    responses_api = False
    credential_fields = (OPTIONAL_API_KEY,)

    def dialect(self, operation: str, config: ProviderConfig, model: str) -> str | None:
        return _wire(config).dialect(operation, config, model)

    def has_responses(self, config: ProviderConfig) -> bool:
        return bool(config.responses_api) and (config.format or "openai") == "openai"

    def endpoint(self, target: ProviderTarget, config: ProviderConfig, secret: Mapping[str, str]) -> Endpoint:
        return _wire(config).endpoint(target, config, secret)

    async def list_models(
        self, outbound: Outbound, record: ProviderRecord, secret: Mapping[str, str]
    ) -> Sequence[ProviderModel]:
        return await _wire(record.config).list_models(outbound, record, secret)


def _wire(config: ProviderConfig) -> Wire:
    try:
        return FORMATS[config.format or "openai"]
    except KeyError:
        raise ProviderNotConfigured("format") from None
