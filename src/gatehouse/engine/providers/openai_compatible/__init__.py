"""Any server that speaks OpenAI's API under its own base URL, with or without a key."""

from collections.abc import Mapping
from typing import Final

from gatehouse.engine.providers.kind import CredentialField, Endpoint, ProviderTarget
from gatehouse.engine.providers.wires import OPTIONAL_API_KEY, OpenAIWire
from gatehouse.policy.catalog import ProviderConfig

#: End of the base URL of Cohere's OpenAI-compatible API. For reranking, Cohere's own API at the same host is called.
_COHERE_COMPATIBILITY: Final = "/compatibility/v1"


class OpenAICompatible(OpenAIWire):
    name = "openai_compatible"
    title = "OpenAI-compatible"
    type = "openai_compatible"
    responses_api = False
    credential_fields = (
        OPTIONAL_API_KEY,
        CredentialField(name="base_url", required=False, secret=False, form="url"),
    )

    def endpoint(self, target: ProviderTarget, config: ProviderConfig, secret: Mapping[str, str]) -> Endpoint:
        base = self.base_url(config)
        if target.operation == "rerank" and base.endswith(_COHERE_COMPATIBILITY):
            return Endpoint(base.removesuffix(_COHERE_COMPATIBILITY) + "/v1/rerank", self.headers(secret))
        return super().endpoint(target, config, secret)
