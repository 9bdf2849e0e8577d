"""Single logout, both ways, by redirects (SAML Profiles, 4.4)."""

from uuid import UUID, uuid4

from starlette.requests import Request

from gatehouse.foundation import tokens
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import TenantId
from gatehouse.platform.access.revoking import end_sessions
from gatehouse.platform.access.saml import (
    assertion,
    certificates,
    keys,
    messages,
    service_provider,
    sign_in,
    table,
    trust,
)
from gatehouse.platform.access.saml.aside import aside
from gatehouse.platform.access.saml.errors import AssertionExpired, InvalidSignature, SamlRefused, UnknownIssuer
from gatehouse.platform.access.saml.service_provider import ServiceProvider
from gatehouse.platform.access.saml.table import Provider, SamlSessionRow
from gatehouse.platform.access.saml.trust import Element, one, text_of
from gatehouse.platform.change import DEFAULT_TENANT, Change
from gatehouse.platform.ports import Host
from gatehouse.platform.requests import changing


async def leave(request: Request, host: Host, tenant_id: TenantId, session_id: UUID) -> str | None:
    """Where the browser of an ended session goes to sign out at the identity provider too; None where there is nothing
    to tell, or nobody. Raises `PublicUrlMissing`."""
    async with host.database.tenant(tenant_id) as reading:
        signed_in = await reading.get(SamlSessionRow, session_id)
    if signed_in is None:
        return None
    async with host.database.service() as lookup:
        provider = await table.active_provider(lookup, signed_in.idp_id)
    if provider is None or provider.slo_url is None:
        return None
    sp = service_provider.here(request, host)
    slo_url = provider.slo_url
    message = messages.logout_request(
        await sign_in.ask(host, provider),
        sp,
        slo_url,
        name_id=signed_in.name_id,
        name_id_attributes=signed_in.name_id_attributes,
        session_index=signed_in.session_index,
    )
    key = await keys.signing(host.database, host.sealer)
    return await aside(lambda: messages.redirect_url(slo_url, "SAMLRequest", message, None, key))


async def asked_to_leave(request: Request, host: Host, encoded: str, relay_state: str | None) -> str | None:
    """Ends the sessions that a provider's logout request names. The answer is where the browser carries our answer;
    None where no address, or more than one, may be meant. Raises `SamlRefused`."""
    sp = service_provider.here(request, host)
    query = request.url.query
    candidates: list[Provider] = []
    try:
        root = await aside(lambda: _message(encoded, "LogoutRequest"))
        candidates = await _known(host, root)
        # Two organizations may use the same provider, which then means the sessions of both.
        meant = await aside(lambda: _signed_by(candidates, query, "SAMLRequest"))
        _is_for_us_now(root, sp)
        had_sessions = []
        for provider in meant:
            async with changing(request, host, provider.tenant_id) as change:
                if await _end(change, provider, root):
                    had_sessions.append(provider)
    except SamlRefused as error:
        await _refused(request, host, candidates, error)
        raise
    # Any organization can enter another's provider, whose certificate is no secret, with an address of its own.
    addresses = {provider.slo_url for provider in had_sessions or meant if provider.slo_url}
    if len(addresses) != 1:
        return None
    message = messages.logout_response(f"_{uuid4().hex}", sp, to := addresses.pop(), in_response_to=root.get("ID"))
    key = await keys.signing(host.database, host.sealer)
    return await aside(lambda: messages.redirect_url(to, "SAMLResponse", message, relay_state, key))


async def left(request: Request, host: Host, encoded: str) -> None:
    """A provider's answer to a logout request of ours; the session ended before that was sent. Raises `SamlRefused`."""
    sp = service_provider.here(request, host)
    query = request.url.query
    provider: Provider | None = None
    try:
        root = await aside(lambda: _message(encoded, "LogoutResponse"))
        async with host.database.service() as lookup:
            asked = await table.asked(lookup, root.get("InResponseTo", ""), kind="logout")
        if asked is None or not asked.open:
            raise AssertionExpired
        provider = asked.provider
        if provider is None or text_of(one(root, "saml:Issuer")) != provider.entity_id:
            raise UnknownIssuer
        trusted = certificates.parse(provider.x509_cert)
        await aside(lambda: trust.verify_query(query, "SAMLResponse", trusted))
        _is_for_us_now(root, sp)
        async with host.database.tenant(provider.tenant_id) as session:
            if not await table.use(session, asked.id):
                raise AssertionExpired
            await session.commit()
    except SamlRefused as error:
        await _refused(request, host, [provider] if provider else [], error)
        raise


def _message(encoded: str, kind: str) -> Element:
    return trust.valid(trust.parsed(trust.inflated(encoded)), kind)


async def _known(host: Host, root: Element) -> list[Provider]:
    async with host.database.service() as lookup:
        found = await table.providers_of_issuer(lookup, text_of(one(root, "saml:Issuer")))
    if not found:
        raise UnknownIssuer
    return found


def _signed_by(candidates: list[Provider], query: str, parameter: str) -> list[Provider]:
    meant, last = [], InvalidSignature()
    for provider in candidates:
        try:
            trust.verify_query(query, parameter, certificates.parse(provider.x509_cert))
        except InvalidSignature as error:
            last = error
        else:
            meant.append(provider)
    if not meant:
        raise last
    return meant


def _is_for_us_now(root: Element, sp: ServiceProvider) -> None:
    if root.get("Destination", sp.slo_url) != sp.slo_url:
        raise InvalidSignature("The message was meant for another address.")
    assertion.check_moment(root, utc_now())


async def _end(change: Change, provider: Provider, root: Element) -> bool:
    """Whether the provider had sessions of that name here."""
    name_id = text_of(one(root, "saml:NameID"))
    if not name_id:
        raise InvalidSignature("The logout request names nobody. Encrypted names are not taken.")
    digest = tokens.digest(root.get("ID"))
    until = utc_now() + 2 * assertion.SKEW
    if not await table.first_seen(change.session, provider.tenant_id, provider.id, digest, until):
        raise AssertionExpired
    indexes = {text_of(each) for each in root.findall("samlp:SessionIndex", messages.NAMESPACES)}
    sessions = await table.sessions_of_subject(change.session, provider.id, name_id)
    for session_id, user_id, index in sessions:
        if not indexes or index is None or index in indexes:
            await end_sessions(change, user_id, "saml_logout", only=session_id)
            change.record("session.ended", "session", session_id, reason="saml_logout", idp_id=provider.id)
    return bool(sessions)


async def _refused(request: Request, host: Host, known: list[Provider], error: SamlRefused) -> None:
    tenant_id, idp_id = (known[0].tenant_id, known[0].id) if len(known) == 1 else (DEFAULT_TENANT, None)
    async with changing(request, host, tenant_id) as change:
        change.record("saml.refused", "saml_idp", idp_id, outcome="failure", reason=error.reason, message=error.text)
