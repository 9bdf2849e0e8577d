"""SAML endpoints: the administration API, and the endpoints that browsers are redirected to."""

from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import RedirectResponse, Response

from gatehouse.foundation.errors import FieldFault, Unprocessable
from gatehouse.foundation.http import forms
from gatehouse.platform.access.browser import clear_cookie, set_cookie
from gatehouse.platform.access.saml import logout, service, sign_in
from gatehouse.platform.access.saml.errors import IdpNotFound, PublicUrlMissing
from gatehouse.platform.access.saml.protocol import keys, messages, service_provider
from gatehouse.platform.access.saml.schemas import (
    Idp,
    IdpList,
    IdpMetadata,
    IdpUpdate,
    MetadataSource,
    NewIdp,
    ServiceProviderDetails,
)
from gatehouse.platform.access.saml.table import IdpRow
from gatehouse.platform.request.callers import RESPONSES, AdminReader, AdminStepUp
from gatehouse.platform.request.injected import Changing, InSplitTransactions, Session, loaded
from gatehouse.platform.request.ports import TheHost

router = APIRouter(tags=["Single sign-on"])

IDP_PATH: Final = "/api/admin/saml/idp"

LoadedIdp = Annotated[IdpRow, Depends(loaded(IdpRow, "idp_id", IdpNotFound))]

_SIGNED_OUT_URL: Final = "/login?done=out"

_REFUSAL_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    400: {
        "description": "Refused; `reason` is `invalid_signature`, `assertion_expired`, `missing_email`,"
        " `unknown_issuer` or `unsolicited_response`."
    },
    503: {"description": "`public_url_missing`: PUBLIC_URL is not set; or too many sign-ins at once."},
}
_ACS_FORM: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            forms.MEDIA_TYPE: {
                "schema": {
                    "type": "object",
                    "required": ["SAMLResponse"],
                    "properties": {
                        "SAMLResponse": {"type": "string", "description": "The response in base64, 256 KiB at most."},
                        "RelayState": {
                            "type": "string",
                            "description": "The URL to redirect the browser to. The rules are those of `relay_state`"
                            " of `/api/saml/login`.",
                        },
                    },
                },
                "example": {"SAMLResponse": "PHNhbWxwOlJlc3BvbnNlIC4uLg==", "RelayState": "/"},
            }
        },
    }
}


@router.post(IDP_PATH, status_code=201, response_model=Idp, responses=RESPONSES)
async def create_identity_provider(caller: AdminStepUp, body: NewIdp, change: Changing) -> object:
    """Adds an identity provider. Users who authenticate there can then sign in to the organization."""
    return await service.create(change, caller, body)


@router.get(IDP_PATH, response_model=IdpList, responses=RESPONSES)
async def list_identity_providers(caller: AdminReader, session: Session) -> IdpList:
    """Returns the organization's identity providers, sorted by name. An organization has at most 100 of them."""
    return await service.list_idps(session)


@router.get(IDP_PATH + "/{idp_id}", response_model=Idp, responses=RESPONSES)
async def get_identity_provider(caller: AdminReader, idp: LoadedIdp) -> object:
    """Returns one identity provider."""
    return idp


@router.put(IDP_PATH + "/{idp_id}", response_model=Idp, responses=RESPONSES)
async def update_identity_provider(caller: AdminStepUp, idp: LoadedIdp, body: IdpUpdate, change: Changing) -> object:
    """Changes the fields that are sent. To rotate the certificate, first send both certificates, and later only the new
    one."""
    return await service.update(change, caller, idp, body)


@router.delete(IDP_PATH + "/{idp_id}", status_code=204, responses=RESPONSES)
async def delete_identity_provider(caller: AdminStepUp, idp: LoadedIdp, change: Changing) -> None:
    """Removes an identity provider. Later sign-ins through it fail; open sessions continue."""
    await service.delete(change, idp)


@router.post("/api/admin/saml/metadata", response_model=IdpMetadata, responses=RESPONSES)
async def read_provider_metadata(
    caller: AdminStepUp, body: MetadataSource, transactions: InSplitTransactions, host: TheHost
) -> object:
    """Reads an identity provider's metadata, and returns its fields for `POST /api/admin/saml/idp`. Stores nothing."""
    return await service.read_metadata(transactions, host.receivers, body)


@router.get("/api/admin/saml/service-provider", response_model=ServiceProviderDetails, responses=RESPONSES)
async def get_service_provider(caller: AdminReader, request: Request, host: TheHost) -> object:
    """Returns the addresses of this platform that identity providers need. They are null if PUBLIC_URL is not set."""
    try:
        return service_provider.for_request(request, host)
    except PublicUrlMissing:
        return ServiceProviderDetails(entity_id=None, acs_url=None, slo_url=None)


@router.get(
    "/api/saml/metadata",
    response_class=Response,
    responses={200: {"content": {"application/xml": {}}}, 503: _REFUSAL_RESPONSES[503]},
)
async def service_provider_metadata(request: Request, host: TheHost) -> Response:
    """Returns the SAML metadata of this platform, which identity providers need."""
    sp = service_provider.for_request(request, host)
    certificates = await keys.certificates(host.database, host.sealer)
    return Response(messages.metadata(sp, certificates), media_type="application/xml")


@router.get(
    "/api/saml/login",
    status_code=302,
    response_class=RedirectResponse,
    responses={404: {"description": "No active identity provider has this id."}, 503: _REFUSAL_RESPONSES[503]},
)
async def begin_sign_in(
    request: Request,
    host: TheHost,
    idp_id: UUID,
    relay_state: Annotated[
        str | None,
        Query(
            description="The URL to redirect the browser to after the sign-in: a path of the platform, or a URL of the"
            " portal. Any other value is ignored."
        ),
    ] = None,
) -> Response:
    """Sends the browser to the identity provider with a signed request."""
    started = await sign_in.begin(request, host, idp_id, relay_state)
    response = RedirectResponse(started.url, 302)
    sign_in.set_browser_cookie(response, started, service_provider.for_request(request, host))
    return response


@router.post(
    "/api/saml/acs",
    status_code=303,
    response_class=RedirectResponse,
    responses={
        **_REFUSAL_RESPONSES,
        403: {
            "description": "The response is valid. `reason` is `not_admitted` (there is no active account),"
            " `address_not_proven` (the account is local, and the domain of its address is not verified) or"
            " `ip_not_allowed` (the organization does not allow the client's IP address)."
        },
    },
    openapi_extra=_ACS_FORM,
)
async def finish_sign_in(request: Request, host: TheHost) -> Response:
    """Accepts the identity provider's response, signs the browser in and redirects it to its destination."""
    encoded, relay_state = await _saml_response(request)
    finished = await sign_in.finish(request, host, encoded, relay_state)
    response = RedirectResponse(finished.url, 303)
    set_cookie(response, finished.secret, host)
    return response


@router.get(
    "/api/saml/slo",
    status_code=302,
    response_class=RedirectResponse,
    responses=_REFUSAL_RESPONSES,
)
async def single_logout(
    request: Request,
    host: TheHost,
    saml_request: Annotated[str | None, Query(alias="SAMLRequest", description="A provider's logout request.")] = None,
    saml_response: Annotated[
        str | None, Query(alias="SAMLResponse", description="A provider's response to this platform's logout request.")
    ] = None,
    relay_state: Annotated[str | None, Query(alias="RelayState")] = None,
) -> Response:
    """Ends the sessions that the identity provider lists, or completes a sign-out that began at this platform. Messages
    must be signed. The browser is redirected to the provider with this platform's response, or to the sign-in page."""
    if (saml_request is None) == (saml_response is None):
        raise Unprocessable(
            faults=[FieldFault("SAMLRequest", "exactly one of SAMLRequest and SAMLResponse must be sent")]
        )
    if saml_response is not None:
        ended_at_provider = await logout.handle_logout_response(request, host, saml_response)
        return RedirectResponse("/login?done=out-everywhere" if ended_at_provider else "/login?done=out-here", 302)
    assert saml_request is not None
    url = await logout.handle_logout_request(request, host, saml_request, relay_state)
    response = RedirectResponse(url or _SIGNED_OUT_URL, 302)
    clear_cookie(response, host)
    return response


async def _saml_response(request: Request) -> tuple[str, str | None]:
    if not forms.is_form(request.headers.get("content-type", "")):
        raise Unprocessable(f"Send a form: Content-Type {forms.MEDIA_TYPE}.")
    try:
        fields = forms.parse_form(await request.body())
    except forms.BadForm as error:
        raise Unprocessable(str(error)) from None
    if not fields.get("SAMLResponse"):
        raise Unprocessable(faults=[FieldFault("SAMLResponse", "missing")])
    return fields["SAMLResponse"], fields.get("RelayState")
