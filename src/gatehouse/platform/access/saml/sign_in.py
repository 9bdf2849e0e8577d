"""Signs users in: sends a request to the identity provider, and processes the provider's response."""

import hmac
from datetime import timedelta
from functools import partial
from typing import Final, NoReturn
from uuid import UUID, uuid4

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.engine.stages.callers.ip_allowlist import AddressNotAllowed
from gatehouse.foundation import emails
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Refusal
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.secrets import tokens
from gatehouse.platform.access.browser import add_browser_session, cookie_digest, end_former_session
from gatehouse.platform.access.linking import AddressNotProven
from gatehouse.platform.access.saml import members, table
from gatehouse.platform.access.saml.errors import (
    AssertionExpired,
    IdpNotFound,
    NotAdmitted,
    SamlRefused,
    UnknownIssuer,
    UnsolicitedResponse,
)
from gatehouse.platform.access.saml.protocol import assertion as assertions
from gatehouse.platform.access.saml.protocol import (
    certificates,
    keys,
    messages,
    service_provider,
    trust,
)
from gatehouse.platform.access.saml.protocol.assertion import SamlAssertion
from gatehouse.platform.access.saml.protocol.messages import XML_THREADS
from gatehouse.platform.access.saml.protocol.service_provider import ServiceProvider
from gatehouse.platform.access.saml.table import RequestRow, SamlProvider, SamlSessionRow, SentRequest
from gatehouse.platform.access.sessions.service import open_session
from gatehouse.platform.access.users import table as users
from gatehouse.platform.changes.change import DEFAULT_TENANT
from gatehouse.platform.request.injected import changing
from gatehouse.platform.request.ports import Host

#: Lifetime of a request, within which the user must sign in at the identity provider.
REQUEST_LIFETIME: Final = timedelta(minutes=30)

#: Maximum length of `RelayState` (SAML Bindings, 3.4.3). A longer destination is stored with the request only.
_MAX_RELAY_STATE_BYTES: Final = 80

#: Destination of a sign-in without a `RelayState` and without a portal.
_CONSOLE_PATH: Final = "/"

#: Maximum number of organizations that are tried for a sign-in that began at the provider, if several use the same
#: provider.
_MAX_CANDIDATE_PROVIDERS: Final = 8


class StartedSignIn(msgspec.Struct, frozen=True):
    """A sign-in that was started. `url` is the URL to redirect to. `browser` is the value of the cookie that binds the
    sign-in to its browser."""

    url: str
    browser: str


class FinishedSignIn(msgspec.Struct, frozen=True):
    """A finished sign-in. `url` is the URL to redirect to. `secret` is the value of the session cookie."""

    url: str
    secret: str


async def begin(request: Request, host: Host, idp_id: UUID, relay_state: str | None) -> StartedSignIn:
    """Start a sign-in at the identity provider. Raises `PublicUrlMissing`, `IdpNotFound`."""
    sp = service_provider.for_request(request, host)
    target = service_provider.allowed_destination(relay_state, sp, host.settings.portal_public_url)
    async with host.database.service() as lookup:
        provider = await table.active_provider(lookup, idp_id)
    if provider is None:
        raise IdpNotFound
    # All tabs of a browser share one value, because several tabs may have sign-ins in progress.
    browser = _browser_cookie(request, sp) or tokens.mint_token("gsb_").plaintext
    request_id = await _store_request(
        host,
        provider,
        "login",
        relay_state=target,
        browser_digest=tokens.digest(browser),
        former_digest=cookie_digest(request),
    )
    key = await keys.signing_key(host.database, host.sealer)
    message = messages.authn_request(request_id, sp, provider.sso_url)
    state = target if target and len(target.encode()) <= _MAX_RELAY_STATE_BYTES else request_id
    url = await XML_THREADS.run(lambda: messages.redirect_url(provider.sso_url, "SAMLRequest", message, state, key))
    return StartedSignIn(url, browser)


async def finish(request: Request, host: Host, encoded: str, relay_state: str | None = None) -> FinishedSignIn:
    """Open a session for the user that the response names. Raises `SamlRefused`, `NotAdmitted`, `AddressNotProven`,
    `AddressNotAllowed`, after it has recorded the refusal in the audit chain."""
    sp = service_provider.for_request(request, host)
    sent_request: SentRequest | None = None
    issuer = ""
    try:
        raw = trust.decode(encoded)
        issuer, in_response_to = await XML_THREADS.run(lambda: _issuer_and_request_id(raw))
        if in_response_to is None:
            provider, assertion = await _unsolicited_provider(host, raw, issuer, sp)
        else:
            async with host.database.service() as lookup:
                sent_request = await table.sent_request(lookup, in_response_to, kind="login")
            provider = await _requested_provider(host, sent_request, issuer)
            assert sent_request is not None
            _check_browser(request, sp, sent_request)
            assertion = await XML_THREADS.run(partial(_verified_assertion, raw, provider, sent_request.id, sp))
        await _check_client_address(request, host, provider.tenant_id)
        secret = await _open_session(request, host, sent_request, provider, assertion)
    except (SamlRefused, NotAdmitted, AddressNotProven, AddressNotAllowed) as error:
        await _refuse(request, host, sent_request, issuer, error)
    portal = host.settings.portal_public_url
    stored_destination = None if sent_request is None else sent_request.relay_state
    return FinishedSignIn(
        service_provider.allowed_destination(relay_state, sp, portal) or stored_destination or portal or _CONSOLE_PATH,
        secret,
    )


def set_browser_cookie(response: Response, started: StartedSignIn, sp: ServiceProvider) -> None:
    """Set the cookie that binds a sign-in to its browser, so that an attacker cannot make a victim's browser finish the
    attacker's sign-in.

    A page of the identity provider posts the response, so the cookie must be sent cross-site, which browsers allow over
    TLS only. Without TLS (on loopback) SameSite is left out, which has nearly the same effect in browsers.
    """
    response.set_cookie(
        _cookie_name(sp),
        started.browser,
        max_age=int(REQUEST_LIFETIME.total_seconds()),
        path="/",
        httponly=True,
        secure=sp.over_https,
        samesite="none" if sp.over_https else None,
    )


def _cookie_name(sp: ServiceProvider) -> str:
    """Return the cookie's name. With the `__Host-` prefix no other host of the same domain can set it."""
    return "__Host-gatehouse_saml" if sp.over_https else "gatehouse_saml"


def _browser_cookie(request: Request, sp: ServiceProvider) -> str | None:
    return request.cookies.get(_cookie_name(sp)) or None


async def store_logout_request(host: Host, provider: SamlProvider) -> str:
    """Store a new logout request and return its id."""
    return await _store_request(host, provider, "logout")


async def _store_request(
    host: Host,
    provider: SamlProvider,
    kind: str,
    *,
    relay_state: str | None = None,
    browser_digest: bytes | None = None,
    former_digest: bytes | None = None,
) -> str:
    now = utc_now()
    request_id = f"_{uuid4().hex}{uuid4().hex}"
    async with host.database.tenant(provider.tenant_id) as session:
        session.add(
            RequestRow(
                id=request_id,
                tenant_id=provider.tenant_id,
                idp_id=provider.id,
                kind=kind,
                browser_digest=browser_digest,
                relay_state=relay_state,
                former_digest=former_digest,
                created_at=now,
                expires_at=now + REQUEST_LIFETIME,
                used_at=None,
            )
        )
        await session.commit()
    return request_id


def _issuer_and_request_id(raw: bytes) -> tuple[str, str | None]:
    """Return the issuer and the request id that the response claims. They are not verified. They only select the stored
    request and the provider to verify the response with."""
    root = trust.parse(raw)
    issuer = trust.text_of(root.find("saml:Issuer", messages.NAMESPACES))
    issuer = issuer or trust.text_of(root.find("saml:Assertion/saml:Issuer", messages.NAMESPACES))
    confirmation = root.find(".//saml:SubjectConfirmationData[@InResponseTo]", messages.NAMESPACES)
    return issuer, root.get("InResponseTo") or (None if confirmation is None else confirmation.get("InResponseTo"))


async def _requested_provider(host: Host, sent_request: SentRequest | None, issuer: str) -> SamlProvider:
    """Return the provider that the request was sent to. Raises `UnknownIssuer` if another provider responds,
    `AssertionExpired` if the request is no longer open."""
    if sent_request is None:
        async with host.database.service() as lookup:
            providers = await table.providers_of_issuer(lookup, issuer)
        if not providers:
            raise UnknownIssuer
        raise AssertionExpired(
            "The answer belongs to no open sign-in. It may have taken too long; begin the sign-in here again."
        )
    if sent_request.provider is None or sent_request.provider.entity_id != issuer:
        raise UnknownIssuer
    if not sent_request.open:
        raise AssertionExpired
    return sent_request.provider


def _check_browser(request: Request, sp: ServiceProvider, sent_request: SentRequest) -> None:
    cookie = _browser_cookie(request, sp)
    if cookie is None or not hmac.compare_digest(tokens.digest(cookie), sent_request.browser_digest or b""):
        raise AssertionExpired("This sign-in was started in another browser, or its cookie is missing. Start it again.")


async def _unsolicited_provider(
    host: Host, raw: bytes, issuer: str, sp: ServiceProvider
) -> tuple[SamlProvider, SamlAssertion]:
    """Return the provider that started a sign-in without a request, and its assertion. If several organizations trust
    the provider's key, the provider of the organization that has verified the domain of the user's address is chosen.
    Each organization reads the address by its own attribute mapping.

    Raises `SamlRefused`."""
    async with host.database.service() as lookup:
        providers = await table.providers_of_issuer(lookup, issuer)
    if not providers:
        raise UnknownIssuer
    refusal: SamlRefused = UnsolicitedResponse()
    candidates: list[tuple[SamlProvider, SamlAssertion, str]] = []
    for provider in [idp for idp in providers if idp.allow_idp_initiated][:_MAX_CANDIDATE_PROVIDERS]:
        try:
            assertion = await XML_THREADS.run(partial(_verified_assertion, raw, provider, None, sp))
            email = members.asserted_user(assertion, provider.attribute_mapping).email
        except SamlRefused as error:
            refusal = error
        else:
            candidates.append((provider, assertion, email))
    if len(candidates) > 1:
        refusal = UnsolicitedResponse("Several organizations use this identity provider. Begin the sign-in here.")
        async with host.database.service() as lookup:
            candidates = [
                (provider, assertion, email)
                for provider, assertion, email in candidates
                if await users.proven_by(lookup, emails.domain(email)) == provider.tenant_id
            ]
    if len(candidates) != 1:
        raise refusal
    provider, assertion, _ = candidates[0]
    return provider, assertion


def _verified_assertion(
    raw: bytes, provider: SamlProvider, request_id: str | None, sp: ServiceProvider
) -> SamlAssertion:
    response = trust.verify_response(raw, provider.entity_id, certificates.parse(provider.x509_cert))
    return assertions.read(response, issuer=provider.entity_id, request_id=request_id, sp=sp, now=utc_now())


async def _check_client_address(request: Request, host: Host, tenant_id: TenantId) -> None:
    """Apply the organization's IP allowlist to the sign-in. The check is skipped if a fresh second factor can bypass
    the allowlist, because the user can verify that factor only after the sign-in. Raises `AddressNotAllowed`."""
    policy = await host.ports.policies.current(tenant_id)
    if policy.ip_allowlist is None or policy.ip_bypass_for_mfa:
        return
    if request.scope["state"]["client_address"] not in policy.ip_allowlist:
        raise AddressNotAllowed(reason=AddressNotAllowed.code)


async def _open_session(
    request: Request, host: Host, sent_request: SentRequest | None, provider: SamlProvider, assertion: SamlAssertion
) -> str:
    """Open a session and return the secret of its cookie. Raises `AssertionExpired`, `NotAdmitted`,
    `AddressNotProven`."""
    asserted = members.asserted_user(assertion, provider.attribute_mapping)
    async with host.database.service() as lookup:
        proven_by = await users.proven_by(lookup, emails.domain(asserted.email))
    async with changing(request, host, provider.tenant_id) as change:
        former = (
            cookie_digest(request)
            if sent_request is None
            else await table.former_cookie_digest(change.session, sent_request)
        )
        digest = tokens.digest(assertion.id)
        already_used = not await table.remember_message(
            change.session, provider.tenant_id, provider.id, digest, assertion.expires_at
        )
        if already_used or (sent_request is not None and not await table.mark_used(change.session, sent_request.id)):
            raise AssertionExpired
        user = await members.find_or_create_user(change, provider, asserted, proven_by=proven_by)
        # Another site posts the response, so the browser does not send the session cookie with it. Its digest was
        # stored with the request instead.
        await end_former_session(change, host, former)
        session = await open_session(change, user, request, amr=["saml"], not_after=assertion.session_expires_at)
        if asserted.groups is not None:
            await members.sync_groups(change, user, asserted.groups)
        if assertion.name_id:
            change.session.add(
                SamlSessionRow(
                    session_id=session.id,
                    tenant_id=provider.tenant_id,
                    idp_id=provider.id,
                    name_id=assertion.name_id,
                    name_id_attributes=assertion.name_id_attributes,
                    session_index=assertion.session_index,
                )
            )
        secret = await add_browser_session(change, session)
        if sent_request is not None:
            await table.update_former_cookie(change.session, sent_request.browser_digest, tokens.digest(secret))
    return secret


async def _refuse(
    request: Request, host: Host, sent_request: SentRequest | None, issuer: str, error: Refusal
) -> NoReturn:
    """Record the refusal in an audit chain and raise the error. The chain is that of the organization that sent the
    request. Without a request, it is the chain of the only organization with this issuer, or else of the operators'
    organization."""
    tenant_id, idp_id = (
        (DEFAULT_TENANT, None) if sent_request is None else (sent_request.tenant_id, sent_request.idp_id)
    )
    if sent_request is None and issuer:
        tenant_id, idp_id = await _sole_provider_of(host, issuer)
    async with changing(request, host, tenant_id) as change:
        reason = error.extra["reason"]
        change.record("saml.refused", "saml_idp", idp_id, outcome="failure", reason=reason, message=error.text)
    raise error


async def _sole_provider_of(host: Host, issuer: str) -> tuple[TenantId, UUID | None]:
    async with host.database.service() as lookup:
        providers = await table.providers_of_issuer(lookup, issuer)
    return (providers[0].tenant_id, providers[0].id) if len(providers) == 1 else (DEFAULT_TENANT, None)
