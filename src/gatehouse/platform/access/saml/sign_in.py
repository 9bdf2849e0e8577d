"""Signing in: the way to the identity provider, and what comes back."""

import hmac
from datetime import timedelta
from functools import partial
from typing import Final, NoReturn
from uuid import UUID, uuid4

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gatehouse.engine.stages.ip_allowlist import AddressNotAllowed
from gatehouse.foundation import emails, tokens
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Refusal
from gatehouse.foundation.identity import TenantId
from gatehouse.platform.access.browser import held, leave_former, open_in_browser_for
from gatehouse.platform.access.linking import AddressNotProven
from gatehouse.platform.access.saml import assertion as assertions
from gatehouse.platform.access.saml import certificates, keys, members, messages, service_provider, table, trust
from gatehouse.platform.access.saml.aside import aside
from gatehouse.platform.access.saml.assertion import Assertion
from gatehouse.platform.access.saml.errors import (
    AssertionExpired,
    IdpNotFound,
    NotAdmitted,
    SamlRefused,
    UnknownIssuer,
    UnsolicitedResponse,
)
from gatehouse.platform.access.saml.service_provider import ServiceProvider
from gatehouse.platform.access.saml.table import Asked, Provider, RequestRow, SamlSessionRow
from gatehouse.platform.access.sessions.service import open_session
from gatehouse.platform.access.users import table as users
from gatehouse.platform.change import DEFAULT_TENANT
from gatehouse.platform.ports import Host
from gatehouse.platform.requests import changing

#: What people may take at their identity provider.
PATIENCE: Final = timedelta(minutes=30)

#: SAML Bindings, 3.4.3. Where a sign-in ends is kept here, too, so that it may be longer.
_MAX_RELAY_STATE_BYTES: Final = 80

#: Where a sign-in ends without a `RelayState` and without a portal.
_CONSOLE: Final = "/"

#: Organizations with the same identity provider that are tried for a sign-in that began there.
_MAX_SHARING: Final = 8


class Begun(msgspec.Struct, frozen=True):
    """`url` is where the browser goes, `browser` what its cookie says from then on."""

    url: str
    browser: str


class Entered(msgspec.Struct, frozen=True):
    """`secret` is the session cookie's."""

    url: str
    secret: str


async def begin(request: Request, host: Host, idp_id: UUID, relay_state: str | None) -> Begun:
    """Raises `PublicUrlMissing`, `IdpNotFound`."""
    sp = service_provider.here(request, host)
    target = service_provider.allowed_destination(relay_state, sp, host.settings.portal_public_url)
    async with host.database.service() as lookup:
        provider = await table.active_provider(lookup, idp_id)
    if provider is None:
        raise IdpNotFound
    # The same for all of a browser's tabs: each may have a sign-in of its own under way.
    browser = _browser(request, sp) or tokens.mint_token("gsb_").plaintext
    request_id = await _ask(
        host, provider, "login", relay_state=target, browser=tokens.digest(browser), former=held(request)
    )
    key = await keys.signing(host.database, host.sealer)
    message = messages.authn_request(request_id, sp, provider.sso_url)
    state = target if target and len(target.encode()) <= _MAX_RELAY_STATE_BYTES else request_id
    url = await aside(lambda: messages.redirect_url(provider.sso_url, "SAMLRequest", message, state, key))
    return Begun(url, browser)


async def finish(request: Request, host: Host, encoded: str, relay_state: str | None = None) -> Entered:
    """Opens a session for whom the answer names. Raises `SamlRefused`, `NotAdmitted`, `AddressNotProven`,
    `AddressNotAllowed`; the audit chain says so."""
    sp = service_provider.here(request, host)
    asked: Asked | None = None
    issuer = ""
    try:
        raw = trust.decoded(encoded)
        issuer, in_response_to = await aside(lambda: _addressed(raw))
        if in_response_to is None:
            provider, assertion = await _unsolicited(host, raw, issuer, sp)
        else:
            async with host.database.service() as lookup:
                asked = await table.asked(lookup, in_response_to, kind="login")
            provider = await _expected(host, asked, issuer)
            assert asked is not None
            _same_browser(request, sp, asked)
            assertion = await aside(partial(_read, raw, provider, asked.id, sp))
        await _check_address(request, host, provider.tenant_id)
        secret = await _enter(request, host, asked, provider, assertion)
    except (SamlRefused, NotAdmitted, AddressNotProven, AddressNotAllowed) as error:
        await _refused(request, host, asked, issuer, error)
    portal = host.settings.portal_public_url
    begun_for = None if asked is None else asked.relay_state
    return Entered(
        service_provider.allowed_destination(relay_state, sp, portal) or begun_for or portal or _CONSOLE, secret
    )


def remember_browser(response: Response, begun: Begun, sp: ServiceProvider) -> None:
    """A sign-in ends in the browser in which it began: nobody can have another's browser finish theirs.

    The answer comes by a form of the identity provider's, so the cookie must come along from another site; browsers
    take such a one over TLS alone. Without TLS (on loopback) no rule is named, which browsers treat nearly the same.
    """
    response.set_cookie(
        _cookie_name(sp),
        begun.browser,
        max_age=int(PATIENCE.total_seconds()),
        path="/",
        httponly=True,
        secure=sp.over_https,
        samesite="none" if sp.over_https else None,
    )


def _cookie_name(sp: ServiceProvider) -> str:
    """With the prefix no other host of the same domain can set it."""
    return "__Host-gatehouse_saml" if sp.over_https else "gatehouse_saml"


def _browser(request: Request, sp: ServiceProvider) -> str | None:
    return request.cookies.get(_cookie_name(sp)) or None


async def ask(host: Host, provider: Provider) -> str:
    """The id of a new logout request."""
    return await _ask(host, provider, "logout")


async def _ask(
    host: Host,
    provider: Provider,
    kind: str,
    *,
    relay_state: str | None = None,
    browser: bytes | None = None,
    former: bytes | None = None,
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
                browser_digest=browser,
                relay_state=relay_state,
                former_digest=former,
                created_at=now,
                expires_at=now + PATIENCE,
                used_at=None,
            )
        )
        await session.commit()
    return request_id


def _addressed(raw: bytes) -> tuple[str, str | None]:
    """Who says to have answered, and to which request. Nothing of it is believed: it says whom to ask."""
    root = trust.parsed(raw)
    issuer = trust.text_of(root.find("saml:Issuer", messages.NAMESPACES))
    issuer = issuer or trust.text_of(root.find("saml:Assertion/saml:Issuer", messages.NAMESPACES))
    confirmed = root.find(".//saml:SubjectConfirmationData[@InResponseTo]", messages.NAMESPACES)
    return issuer, root.get("InResponseTo") or (None if confirmed is None else confirmed.get("InResponseTo"))


async def _expected(host: Host, asked: Asked | None, issuer: str) -> Provider:
    """The provider that was asked, if it is the one that answers, and in time."""
    if asked is None:
        async with host.database.service() as lookup:
            known = await table.providers_of_issuer(lookup, issuer)
        if not known:
            raise UnknownIssuer
        raise AssertionExpired("The answer is to no sign-in that is open here. Begin it here, and take less long.")
    if asked.provider is None or asked.provider.entity_id != issuer:
        raise UnknownIssuer
    if not asked.open:
        raise AssertionExpired
    return asked.provider


def _same_browser(request: Request, sp: ServiceProvider, asked: Asked) -> None:
    shown = _browser(request, sp)
    if shown is None or not hmac.compare_digest(tokens.digest(shown), asked.browser_digest or b""):
        raise AssertionExpired("This sign-in was begun in another browser, or its cookie is gone. Begin it again.")


async def _unsolicited(host: Host, raw: bytes, issuer: str, sp: ServiceProvider) -> tuple[Provider, Assertion]:
    """The provider that began a sign-in by itself, and what it says. Where several organizations trust its key, the one
    that has proven the person's address is meant; each reads the address by its own attribute mapping.

    Raises `SamlRefused`."""
    async with host.database.service() as lookup:
        known = await table.providers_of_issuer(lookup, issuer)
    if not known:
        raise UnknownIssuer
    refused: SamlRefused = UnsolicitedResponse()
    fitting: list[tuple[Provider, Assertion, str]] = []
    for provider in [candidate for candidate in known if candidate.allow_idp_initiated][:_MAX_SHARING]:
        try:
            assertion = await aside(partial(_read, raw, provider, None, sp))
            email = members.person(assertion, provider.attribute_mapping).email
        except SamlRefused as error:
            refused = error
        else:
            fitting.append((provider, assertion, email))
    if len(fitting) > 1:
        refused = UnsolicitedResponse("Several organizations use this identity provider. Begin the sign-in here.")
        async with host.database.service() as lookup:
            fitting = [
                (provider, assertion, email)
                for provider, assertion, email in fitting
                if await users.proven_by(lookup, emails.domain(email)) == provider.tenant_id
            ]
    if len(fitting) != 1:
        raise refused
    provider, assertion, _ = fitting[0]
    return provider, assertion


def _read(raw: bytes, provider: Provider, request_id: str | None, sp: ServiceProvider) -> Assertion:
    response = trust.believed(raw, provider.entity_id, certificates.parse(provider.x509_cert))
    return assertions.read(response, issuer=provider.entity_id, request_id=request_id, sp=sp, now=utc_now())


async def _check_address(request: Request, host: Host, tenant_id: TenantId) -> None:
    """The organization's address ranges bind here as they bind the API; where a fresh second factor lifts them, it can
    only be shown after the sign-in. Raises `AddressNotAllowed`."""
    policy = await host.ports.policies.current(tenant_id)
    if policy.ip_allowlist is None or policy.ip_bypass_for_mfa:
        return
    if request.scope["state"]["client_address"] not in policy.ip_allowlist:
        raise AddressNotAllowed(reason=AddressNotAllowed.code)


async def _enter(request: Request, host: Host, asked: Asked | None, provider: Provider, assertion: Assertion) -> str:
    """The secret of the session's cookie."""
    who = members.person(assertion, provider.attribute_mapping)
    async with host.database.service() as lookup:
        proven_by = await users.proven_by(lookup, emails.domain(who.email))
    async with changing(request, host, provider.tenant_id) as change:
        former = held(request) if asked is None else await table.browser_held(change.session, asked)
        digest = tokens.digest(assertion.id)
        seen = not await table.first_seen(change.session, provider.tenant_id, provider.id, digest, assertion.until)
        if seen or (asked is not None and not await table.use(change.session, asked.id)):
            raise AssertionExpired
        user = await members.admitted(change, provider, who, proven_by=proven_by)
        # The answer comes from another site, without the session's cookie: whose it was is known from the setting out.
        await leave_former(change, host, former)
        session = await open_session(change, user, request, amr=["saml"], not_after=assertion.session_until)
        if who.groups is not None:
            await members.sync_groups(change, user, who.groups)
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
        secret = await open_in_browser_for(change, session)
        if asked is not None:
            await table.browser_holds(change.session, asked.browser_digest, tokens.digest(secret))
    return secret


async def _refused(request: Request, host: Host, asked: Asked | None, issuer: str, error: Refusal) -> NoReturn:
    """In the chain of the organization that asked; else of the only one that knows the issuer; else the operators'."""
    tenant_id, idp_id = (DEFAULT_TENANT, None) if asked is None else (asked.tenant_id, asked.idp_id)
    if asked is None and issuer:
        tenant_id, idp_id = await _only_one(host, issuer)
    async with changing(request, host, tenant_id) as change:
        reason = error.extra["reason"]
        change.record("saml.refused", "saml_idp", idp_id, outcome="failure", reason=reason, message=error.text)
    raise error


async def _only_one(host: Host, issuer: str) -> tuple[TenantId, UUID | None]:
    async with host.database.service() as lookup:
        known = await table.providers_of_issuer(lookup, issuer)
    return (known[0].tenant_id, known[0].id) if len(known) == 1 else (DEFAULT_TENANT, None)
