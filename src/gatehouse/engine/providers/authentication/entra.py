"""Access tokens of Microsoft Entra ID for Azure's cognitive services: by the secret of an application, or by the
identity of this machine.

The identity is the workload identity that `AZURE_FEDERATED_TOKEN_FILE` names (AKS), or the managed identity of App
Service and Container Apps (`IDENTITY_ENDPOINT`), or that of the instance's metadata service.
"""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from gatehouse.engine.providers.authentication.tokens import AccessToken, Bearer, TokenCache, fetch_token, read_token
from gatehouse.foundation.outbound import Outbound
from gatehouse.foundation.outbound.metadata import MetadataRequest, request_metadata

_ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_METADATA_URL: Final = "http://169.254.169.254/metadata/identity/oauth2/token"


class Cloud(NamedTuple):
    """The authority that issues the tokens of one of Azure's clouds, and the resource that they are for."""

    authority: str
    resource: str


_PUBLIC_CLOUD: Final = Cloud("https://login.microsoftonline.com", "https://cognitiveservices.azure.com")
#: Other clouds, by the last labels of an endpoint's host.
_CLOUDS: Final = {
    ".azure.us": Cloud("https://login.microsoftonline.us", "https://cognitiveservices.azure.us"),
    ".azure.cn": Cloud("https://login.chinacloudapi.cn", "https://cognitiveservices.azure.cn"),
}


def cloud_of(endpoint: str) -> Cloud:
    """Return the cloud of an endpoint."""
    host = urlsplit(endpoint).hostname or ""
    return next((cloud for suffix, cloud in _CLOUDS.items() if host.endswith(suffix)), _PUBLIC_CLOUD)


class Application(NamedTuple):
    """An application with a secret. `tenant_id` is the id of its directory."""

    tenant_id: str
    client_id: str
    client_secret: str


class EntraTokens:
    """The access tokens of Entra ID, for all providers of this process. `authority` replaces the authorities of all
    clouds."""

    def __init__(
        self,
        environment: Mapping[str, str] = os.environ,
        *,
        authority: str | None = None,
        request: MetadataRequest = request_metadata,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._environment = environment
        self._authority = authority
        self._request = request
        self._now = now
        self._by_application = TokenCache("entra", "no_access_token", now)
        self._of_machine = TokenCache("entra_machine", "no_instance_role", now)

    def of_application(self, outbound: Outbound, application: Application, cloud: Cloud, provider: str) -> Bearer:
        """Return a transport that authenticates with an application's secret. `provider` is the provider's id, for the
        log."""
        load = partial(self._by_secret, outbound, application, cloud)
        return self._by_application.bearer(outbound, (application, cloud), load, provider)

    def of_machine(self, outbound: Outbound, cloud: Cloud, provider: str) -> Bearer:
        """Return a transport that authenticates with the identity of this machine."""
        return self._of_machine.bearer(outbound, cloud, partial(self._by_machine, outbound, cloud), provider)

    async def _by_secret(self, outbound: Outbound, application: Application, cloud: Cloud) -> AccessToken:
        form = {"client_id": application.client_id, "client_secret": application.client_secret}
        return await self._fetch(outbound, self._authority or cloud.authority, application.tenant_id, cloud, form)

    async def _by_machine(self, outbound: Outbound, cloud: Cloud) -> AccessToken:
        variable = self._environment.get
        file, client, directory = (
            variable(name) for name in ("AZURE_FEDERATED_TOKEN_FILE", "AZURE_CLIENT_ID", "AZURE_TENANT_ID")
        )
        if file and client and directory:
            assertion = (await asyncio.to_thread(Path(file).read_text)).strip()
            authority = self._authority or variable("AZURE_AUTHORITY_HOST") or cloud.authority
            form = {
                "client_id": client,
                "client_assertion_type": _ASSERTION_TYPE,
                "client_assertion": assertion,
            }
            return await self._fetch(outbound, authority, directory, cloud, form)
        query = {"resource": cloud.resource, **({"client_id": client} if client else {})}
        endpoint, header = variable("IDENTITY_ENDPOINT"), variable("IDENTITY_HEADER")
        if endpoint and header:
            url = f"{endpoint}?{urlencode({'api-version': '2019-08-01', **query})}"
            return read_token(await self._request("GET", url, {"X-IDENTITY-HEADER": header}), self._now())
        url = f"{_METADATA_URL}?{urlencode({'api-version': '2018-02-01', **query})}"
        return read_token(await self._request("GET", url, {"Metadata": "true"}), self._now())

    async def _fetch(
        self, outbound: Outbound, authority: str, directory: str, cloud: Cloud, form: Mapping[str, str]
    ) -> AccessToken:
        url = f"{authority.rstrip('/')}/{quote(directory, safe='')}/oauth2/v2.0/token"
        scope = f"{cloud.resource}/.default"
        return await fetch_token(outbound, url, {"grant_type": "client_credentials", "scope": scope, **form}, self._now)
