"""The built-in provider: deterministic, in this process, without network or key, for trials and tests.

Models: `echo`, `slow-<n>ms`, `status-<code>`, `tokens-<in>-<out>`, `stream-<n>`, `cut`, `garbage`, `tools`,
`embed`, and one for each further use: `moderation`, `rerank`, `image`, `transcription`, `speech`.
"""

from collections.abc import Mapping, Sequence

from gatehouse.engine.providers.kind import CredentialField, Endpoint, ProviderModel, ProviderTarget
from gatehouse.engine.providers.sandbox.behaviour import LISTED_MODELS, WITHOUT_STREAMS
from gatehouse.engine.providers.sandbox.carrier import SandboxOutbound
from gatehouse.engine.providers.wires import OpenAIWire
from gatehouse.foundation.outbound import Outbound
from gatehouse.policy.catalog import ProviderConfig, ProviderRecord


class Sandbox(OpenAIWire):
    name = "sandbox"
    title = "Sandbox"
    type = "native"
    credential_fields: tuple[CredentialField, ...] = ()

    def __init__(self) -> None:
        self._carrier = SandboxOutbound()

    def endpoint(self, target: ProviderTarget, config: ProviderConfig, secret: Mapping[str, str]) -> Endpoint:
        return Endpoint("sandbox:" + self.paths[target.operation], {})

    def carrier(self, outbound: Outbound, provider: ProviderRecord, secret: Mapping[str, str]) -> Outbound:
        return self._carrier

    async def list_models(
        self, outbound: Outbound, record: ProviderRecord, secret: Mapping[str, str]
    ) -> Sequence[ProviderModel]:
        return [
            ProviderModel(
                model_id=name,
                display_name=f"Sandbox {name}",
                context_window=128_000,
                supports_streaming=name not in WITHOUT_STREAMS,
            )
            for name in LISTED_MODELS
        ]
