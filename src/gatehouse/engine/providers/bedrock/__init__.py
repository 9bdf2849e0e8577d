"""Amazon Bedrock. Chats go by Converse, one dialect for models of every maker. Calls are signed, with keys or with the
role of the machine; streams come in AWS's binary framing."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import quote

from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.providers.bedrock.carrier import Signing
from gatehouse.engine.providers.bedrock.machine import Machine
from gatehouse.engine.providers.bedrock.models import listed
from gatehouse.engine.providers.bedrock.signing import Identity, Scope
from gatehouse.engine.providers.failure import ProviderFailed, of_status
from gatehouse.engine.providers.kind import CredentialField, Endpoint, FoundModel, NotConfigured, Target
from gatehouse.engine.providers.wires import Wire
from gatehouse.foundation.outbound import Outbound
from gatehouse.policy.records import ProviderConfig, ProviderRecord

_SERVICE: Final = "bedrock"
#: Of regions that stand apart, by how their names begin.
_DOMAINS: Final = {"cn": "amazonaws.com.cn", "eusc": "amazonaws.eu"}
_ROLE: Final = "use_instance_role"
#: What stands in a path unchanged on its way to the socket, so that what is signed is what is sent.
_SAFE: Final = "!$&'()*+,;=:@"
#: Of InvokeModel, with a body in the words of the model's maker: Cohere's tell no tokens.
_TOKENS_READ: Final = "x-amzn-bedrock-input-token-count"
_COUNT: Final = re.compile(r"\d{1,9}", re.ASCII)


class Bedrock(Wire):
    name = "bedrock"
    title = "Amazon Bedrock"
    type = "cloudmanaged"
    credential_fields = (
        CredentialField(name="cloud_access_key_id", secret=False, pattern="[A-Za-z0-9]{16,128}", unless=_ROLE),
        CredentialField(name="cloud_secret_access_key", unless=_ROLE),
        # It becomes part of a host's name.
        CredentialField(name="cloud_region", secret=False, pattern=r"[a-z]{2,4}(-[a-z]{2,12}){1,3}-\d{1,2}"),
        CredentialField(name=_ROLE, required=False, secret=False, form="flag"),
    )
    dialects: Mapping[str, str] = {"chat": "bedrock_converse", "embeddings": "bedrock_embed"}
    #: all of them are signed
    fixed_headers: Mapping[str, str] = {}

    def __init__(self, machine: Machine | None = None) -> None:
        self._machine = machine or Machine()

    def endpoint(self, target: Target, config: ProviderConfig, secret: Mapping[str, str]) -> Endpoint:
        base = config.base_url or _host("bedrock-runtime", config)
        method = "invoke"
        if target.operation == "chat":
            method = "converse-stream" if target.stream else "converse"
        return Endpoint(f"{base.rstrip('/')}/model/{quote(target.model, safe=_SAFE)}/{method}", self.fixed_headers)

    def carrier(self, outbound: Outbound, config: ProviderConfig, secret: Mapping[str, str]) -> Outbound:
        if not config.cloud_region:
            raise NotConfigured("cloud_region")
        scope = Scope(config.cloud_region, _SERVICE)
        if config.use_instance_role:
            return Signing(outbound, scope, self._machine.get)
        key = secret.get("cloud_secret_access_key")
        if not config.cloud_access_key_id or not key:
            raise NotConfigured("cloud_access_key_id")
        identity = Identity(access_key_id=config.cloud_access_key_id, secret_access_key=key)

        async def known() -> Identity:
            return identity

        return Signing(outbound, scope, known)

    def failure(self, status: int, headers: Mapping[str, str], body: bytes, secrets: Iterable[str]) -> ProviderFailed:
        if headers.get("x-amzn-errortype", "").startswith("ServiceQuotaExceededException"):
            # A 400, as if the request were at fault; it is the account's share that is used up.
            return ProviderFailed("rate_limited", status=status)
        return of_status(status, headers, body, secrets)

    def usage(self, headers: Mapping[str, str]) -> Usage | None:
        told = headers.get(_TOKENS_READ, "")
        return Usage(input_tokens=int(told)) if _COUNT.fullmatch(told) else None

    async def list_models(
        self, outbound: Outbound, record: ProviderRecord, secret: Mapping[str, str]
    ) -> Sequence[FoundModel]:
        base = (record.config.base_url or _host("bedrock", record.config)).rstrip("/")
        return await listed(self.carrier(outbound, record.config, secret), base, self.fixed_headers, record)


def _host(service: str, config: ProviderConfig) -> str:
    region = config.cloud_region
    if not region:
        raise NotConfigured("cloud_region")
    return f"https://{service}.{region}.{_DOMAINS.get(region.partition('-')[0], 'amazonaws.com')}"
