"""Amazon Bedrock. Chats use Converse, one dialect for the models of all vendors. Calls have a Bedrock API key, or are
signed with keys or with the role of the machine. Streams have AWS's binary framing."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final
from urllib.parse import quote

from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.providers.bedrock.carrier import BedrockApiKey, BedrockCarrier, Signature
from gatehouse.engine.providers.bedrock.machine import Machine
from gatehouse.engine.providers.bedrock.models import list_callable_models
from gatehouse.engine.providers.bedrock.signing import Scope, SigningIdentity, domain_of
from gatehouse.engine.providers.failure import ProviderFailed, of_status
from gatehouse.engine.providers.kind import (
    CredentialField,
    Endpoint,
    ProviderModel,
    ProviderNotConfigured,
    ProviderTarget,
)
from gatehouse.engine.providers.wires import Wire
from gatehouse.foundation.outbound import Outbound
from gatehouse.policy.catalog import ProviderConfig, ProviderRecord

_SERVICE: Final = "bedrock"
#: Characters that the HTTP client sends unchanged in a path, so that the signed path is the sent one.
_SAFE_PATH_CHARACTERS: Final = "!$&'()*+,;=:@"
#: Header in which InvokeModel reports the input tokens. Its body has the vendor's format; Cohere's has no token count.
_INPUT_TOKENS_HEADER: Final = "x-amzn-bedrock-input-token-count"
_COUNT: Final = re.compile(r"\d{1,9}", re.ASCII)
#: The regions before the model's id in the id of an inference profile. Tokens are counted under the model's id alone.
_PROFILE: Final = re.compile(r"^[a-z-]{2,8}\.(?=anthropic\.)")


class Bedrock(Wire):
    name = "bedrock"
    title = "Amazon Bedrock"
    type = "cloudmanaged"
    credential_fields = (
        CredentialField(
            name="cloud_access_key_id",
            secret=False,
            pattern="[A-Za-z0-9]{16,128}",
            way="keys",
            per_credential=True,
        ),
        CredentialField(name="cloud_secret_access_key", way="keys"),
        CredentialField(name="cloud_session_token", required=False, way="keys"),
        CredentialField(name="api_key", way="api_key"),
        CredentialField(name="use_instance_role", secret=False, form="flag", way="role"),
        # The region becomes part of a host name.
        CredentialField(name="cloud_region", secret=False, pattern=r"[a-z]{2,4}(-[a-z]{2,12}){1,3}-\d{1,2}"),
    )
    dialects: Mapping[str, str] = {
        "chat": "bedrock_converse",
        "embeddings": "bedrock_embed",
        "count_tokens": "bedrock_count",
    }
    priced_regions = frozenset({"us-east-1", "us-east-2", "us-west-2"})
    #: empty, because all headers are signed
    fixed_headers: Mapping[str, str] = {}

    def __init__(self, machine: Machine | None = None) -> None:
        self._machine = machine or Machine()

    def endpoint(self, target: ProviderTarget, config: ProviderConfig, secret: Mapping[str, str]) -> Endpoint:
        base = config.base_url or _host("bedrock-runtime", config)
        model, method = target.model, "invoke"
        if target.operation == "chat":
            method = "converse-stream" if target.stream else "converse"
        elif target.operation == "count_tokens":
            model, method = _PROFILE.sub("", model), "count-tokens"
        return Endpoint(
            f"{base.rstrip('/')}/model/{quote(model, safe=_SAFE_PATH_CHARACTERS)}/{method}", self.fixed_headers
        )

    def dialect(self, operation: str, config: ProviderConfig, model: str) -> str | None:
        if operation == "count_tokens" and "anthropic." not in model:
            # Bedrock counts for Anthropic's models only.
            return None
        return super().dialect(operation, config, model)

    def carrier(self, outbound: Outbound, provider: ProviderRecord, secret: Mapping[str, str]) -> Outbound:
        config = provider.config
        if not config.cloud_region:
            raise ProviderNotConfigured("cloud_region")
        scope = Scope(config.cloud_region, _SERVICE)
        if config.use_instance_role:
            machine_key = self._machine.api_key
            if machine_key:
                return BedrockCarrier(outbound, BedrockApiKey(machine_key))
            return BedrockCarrier(outbound, Signature(scope, partial(self._machine.get, outbound, provider.id)))
        if api_key := secret.get("api_key"):
            return BedrockCarrier(outbound, BedrockApiKey(api_key))
        key = secret.get("cloud_secret_access_key")
        # Each credential other than the default one has its own key id.
        key_id = secret.get("cloud_access_key_id") or config.cloud_access_key_id
        if not key_id or not key:
            raise ProviderNotConfigured("cloud_access_key_id")
        identity = SigningIdentity(
            access_key_id=key_id,
            secret_access_key=key,
            session_token=secret.get("cloud_session_token"),
        )

        async def configured_identity() -> SigningIdentity:
            return identity

        return BedrockCarrier(outbound, Signature(scope, configured_identity))

    def failure(self, status: int, headers: Mapping[str, str], body: bytes, secrets: Iterable[str]) -> ProviderFailed:
        if headers.get("x-amzn-errortype", "").startswith("ServiceQuotaExceededException"):
            # The status is 400, but the quota of the account is exhausted; the request is not at fault.
            return ProviderFailed("rate_limited", status=status)
        return of_status(status, headers, body, secrets)

    def usage(self, headers: Mapping[str, str]) -> Usage | None:
        count = headers.get(_INPUT_TOKENS_HEADER, "")
        return Usage(input_tokens=int(count)) if _COUNT.fullmatch(count) else None

    async def list_models(
        self, outbound: Outbound, record: ProviderRecord, secret: Mapping[str, str]
    ) -> Sequence[ProviderModel]:
        base = (record.config.base_url or _host("bedrock", record.config)).rstrip("/")
        return await list_callable_models(self.carrier(outbound, record, secret), base, self.fixed_headers, record)


def _host(service: str, config: ProviderConfig) -> str:
    region = config.cloud_region
    if not region:
        raise ProviderNotConfigured("cloud_region")
    return f"https://{service}.{region}.{domain_of(region)}"
