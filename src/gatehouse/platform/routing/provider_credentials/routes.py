"""The endpoints of a provider's credentials (docs/providers.md)."""

from typing import Annotated, NamedTuple

from fastapi import APIRouter, Depends, Path

from gatehouse.administration.etags import TheVersions
from gatehouse.platform.request.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.request.injected import Changing, Session
from gatehouse.platform.request.ports import TheHost
from gatehouse.platform.routing.provider_credentials import service
from gatehouse.platform.routing.provider_credentials.schemas import (
    CredentialUpdate,
    NewCredential,
    ProviderCredential,
    ProviderCredentials,
    SecretFields,
)
from gatehouse.platform.routing.providers.routes import LoadedProvider
from gatehouse.platform.routing.providers.table import CredentialRow, ProviderRow

router = APIRouter(prefix="/api/admin/providers/{provider_id}/credentials", tags=["Providers"], responses=RESPONSES)


class _Loaded(NamedTuple):
    """A credential of a provider. `row` is None for the default one."""

    provider: ProviderRow
    row: CredentialRow | None


async def _loaded(
    session: Session,
    provider: LoadedProvider,
    versions: TheVersions,
    label: Annotated[str, Path(max_length=64, description="The credential's label.", examples=["default"])],
) -> _Loaded:
    row = await service.find(session, provider, label)
    versions.about(provider if row is None else row, "label")
    return _Loaded(provider, row)


LoadedCredential = Annotated[_Loaded, Depends(_loaded)]


@router.get("", response_model=ProviderCredentials)
async def list_provider_credentials(
    caller: AdminReader, provider: LoadedProvider, versions: TheVersions, session: Session
) -> ProviderCredentials:
    """Lists the provider's credentials, without their secrets."""
    versions.about(provider, "provider_id", part="/credentials")
    return ProviderCredentials(credentials=await service.list_all(session, provider))


@router.post("", status_code=201, response_model=ProviderCredential)
async def add_provider_credential(
    caller: AdminStepUp, provider: LoadedProvider, body: NewCredential, change: Changing, host: TheHost
) -> ProviderCredential:
    """Adds a credential to a provider. Calls that start after the response use it in turn with the others.

    All credentials of a provider belong to the same account of the vendor. For another account, add another provider.
    """
    return await service.add(change, host.sealer, provider, body)


@router.get("/{label}", response_model=ProviderCredential)
async def read_provider_credential(caller: AdminReader, credential: LoadedCredential) -> ProviderCredential:
    """Returns one credential of a provider, without its secret."""
    return service.shown(credential.provider, credential.row)


@router.patch("/{label}", response_model=ProviderCredential)
async def update_provider_credential(
    caller: AdminStepUp, credential: LoadedCredential, body: CredentialUpdate, change: Changing
) -> ProviderCredential:
    """Changes the state of a credential. 409 if the provider would be left without a credential in use."""
    return await service.set_state(change, credential.provider, credential.row, body.state)


@router.post("/{label}/rotate", response_model=ProviderCredential)
async def rotate_provider_credential(
    caller: AdminStepUp, credential: LoadedCredential, body: SecretFields, change: Changing, host: TheHost
) -> ProviderCredential:
    """Replaces the secret of a credential. Calls in progress end with the old secret. Calls that start after the
    response use the new one."""
    return await service.rotate(change, host.sealer, credential.provider, credential.row, body)


@router.delete("/{label}", status_code=204)
async def remove_provider_credential(caller: AdminStepUp, credential: LoadedCredential, change: Changing) -> None:
    """Removes a credential. 409 if the provider would be left without a credential in use."""
    await service.remove(change, credential.provider, credential.row)
