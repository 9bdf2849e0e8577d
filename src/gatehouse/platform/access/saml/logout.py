"""Single logout in both directions, over the redirect binding (SAML Profiles, 4.4)."""

from uuid import UUID, uuid4

from starlette.requests import Request

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.secrets import tokens
from gatehouse.platform.access.revoking import end_sessions
from gatehouse.platform.access.saml import sign_in, table
from gatehouse.platform.access.saml.errors import AssertionExpired, InvalidSignature, SamlRefused, UnknownIssuer
from gatehouse.platform.access.saml.protocol import (
    assertion,
    certificates,
    keys,
    messages,
    service_provider,
    trust,
)
from gatehouse.platform.access.saml.protocol.messages import XML_THREADS
from gatehouse.platform.access.saml.protocol.service_provider import ServiceProvider
from gatehouse.platform.access.saml.protocol.trust import Element, find_one, text_of
from gatehouse.platform.access.saml.table import SamlProvider, SamlSessionRow
from gatehouse.platform.changes.change import DEFAULT_TENANT, Change
from gatehouse.platform.request.injected import changing
from gatehouse.platform.request.ports import Host


async def logout_request_url(request: Request, host: Host, tenant_id: TenantId, session_id: UUID) -> str | None:
    """Return the URL at which the browser of an ended session signs out at the identity provider too. None if no
    identity provider opened the session, or if the provider has no `slo_url`. Raises `PublicUrlMissing`."""
    async with host.database.tenant(tenant_id) as reading:
        saml_session = await reading.get(SamlSessionRow, session_id)
    if saml_session is None:
        return None
    async with host.database.service() as lookup:
        provider = await table.active_provider(lookup, saml_session.idp_id)
    if provider is None or provider.slo_url is None:
        return None
    sp = service_provider.for_request(request, host)
    slo_url = provider.slo_url
    message = messages.logout_request(
        await sign_in.store_logout_request(host, provider),
        sp,
        slo_url,
        name_id=saml_session.name_id,
        name_id_attributes=saml_session.name_id_attributes,
        session_index=saml_session.session_index,
    )
    key = await keys.signing_key(host.database, host.sealer)
    return await XML_THREADS.run(lambda: messages.redirect_url(slo_url, "SAMLRequest", message, None, key))


async def handle_logout_request(request: Request, host: Host, encoded: str, relay_state: str | None) -> str | None:
    """End the sessions that a provider's logout request names. Return the URL with this platform's response; None if no
    provider has an `slo_url`, or if several possible providers have different ones. Raises `SamlRefused`."""
    sp = service_provider.for_request(request, host)
    query = request.url.query
    candidates: list[SamlProvider] = []
    try:
        root = await XML_THREADS.run(lambda: _message(encoded, "LogoutRequest"))
        candidates = await _providers_of_issuer(host, root)
        # Several organizations may use the same provider. The request then ends the sessions of all of them.
        signers = await XML_THREADS.run(lambda: _signed_by(candidates, query, "SAMLRequest"))
        _check_recipient_and_time(root, sp)
        had_sessions = []
        for provider in signers:
            async with changing(request, host, provider.tenant_id) as change:
                if await _end_matching_sessions(change, provider, root):
                    had_sessions.append(provider)
    except SamlRefused as error:
        await _record_refusal(request, host, candidates, error)
        raise
    # Any organization can configure the provider of another one, because its certificate is public, and set its own
    # `slo_url` for it. Therefore the response is sent only if the address is unambiguous.
    addresses = {provider.slo_url for provider in had_sessions or signers if provider.slo_url}
    if len(addresses) != 1:
        return None
    message = messages.logout_response(
        f"_{uuid4().hex}", sp, destination := addresses.pop(), in_response_to=root.get("ID")
    )
    key = await keys.signing_key(host.database, host.sealer)
    return await XML_THREADS.run(lambda: messages.redirect_url(destination, "SAMLResponse", message, relay_state, key))


async def handle_logout_response(request: Request, host: Host, encoded: str) -> bool:
    """Check a provider's response to this platform's logout request, and return whether the provider's session ended.
    The session here ended before the request was sent.

    Raises `SamlRefused`."""
    sp = service_provider.for_request(request, host)
    query = request.url.query
    provider: SamlProvider | None = None
    try:
        root = await XML_THREADS.run(lambda: _message(encoded, "LogoutResponse"))
        async with host.database.service() as lookup:
            sent_request = await table.sent_request(lookup, root.get("InResponseTo", ""), kind="logout")
        if sent_request is None or not sent_request.open:
            raise AssertionExpired
        provider = sent_request.provider
        if provider is None or text_of(find_one(root, "saml:Issuer")) != provider.entity_id:
            raise UnknownIssuer
        trusted = certificates.parse(provider.x509_cert)
        await XML_THREADS.run(lambda: trust.verify_query(query, "SAMLResponse", trusted))
        _check_recipient_and_time(root, sp)
        async with host.database.tenant(provider.tenant_id) as session:
            if not await table.mark_used(session, sent_request.id):
                raise AssertionExpired
            await session.commit()
        status = find_one(root, "samlp:Status/samlp:StatusCode")
        return status is not None and status.get("Value") == messages.SUCCESS
    except SamlRefused as error:
        await _record_refusal(request, host, [provider] if provider else [], error)
        raise


def _message(encoded: str, kind: str) -> Element:
    return trust.validate(trust.parse(trust.inflate(encoded)), kind)


async def _providers_of_issuer(host: Host, root: Element) -> list[SamlProvider]:
    async with host.database.service() as lookup:
        providers = await table.providers_of_issuer(lookup, text_of(find_one(root, "saml:Issuer")))
    if not providers:
        raise UnknownIssuer
    return providers


def _signed_by(candidates: list[SamlProvider], query: str, parameter: str) -> list[SamlProvider]:
    signers, refusal = [], InvalidSignature()
    for provider in candidates:
        try:
            trust.verify_query(query, parameter, certificates.parse(provider.x509_cert))
        except InvalidSignature as error:
            refusal = error
        else:
            signers.append(provider)
    if not signers:
        raise refusal
    return signers


def _check_recipient_and_time(root: Element, sp: ServiceProvider) -> None:
    if root.get("Destination", sp.slo_url) != sp.slo_url:
        raise InvalidSignature("The message was meant for another address.")
    assertion.check_time(root, utc_now())


async def _end_matching_sessions(change: Change, provider: SamlProvider, root: Element) -> bool:
    """End the sessions that the logout request names; return whether the provider had sessions for that NameID."""
    name_id = text_of(find_one(root, "saml:NameID"))
    if not name_id:
        raise InvalidSignature("The logout request has no NameID. Encrypted NameIDs are not supported.")
    digest = tokens.digest(root.get("ID"))
    expires_at = utc_now() + 2 * assertion.MAX_CLOCK_SKEW
    if not await table.remember_message(change.session, provider.tenant_id, provider.id, digest, expires_at):
        raise AssertionExpired
    indexes = {text_of(element) for element in root.findall("samlp:SessionIndex", messages.NAMESPACES)}
    sessions = await table.sessions_of_subject(change.session, provider.id, name_id)
    for session_id, user_id, index in sessions:
        if not indexes or index is None or index in indexes:
            await end_sessions(change, user_id, "saml_logout", only=session_id)
            change.record("session.ended", "session", session_id, reason="saml_logout", idp_id=provider.id)
    return bool(sessions)


async def _record_refusal(request: Request, host: Host, providers: list[SamlProvider], error: SamlRefused) -> None:
    tenant_id, idp_id = (providers[0].tenant_id, providers[0].id) if len(providers) == 1 else (DEFAULT_TENANT, None)
    async with changing(request, host, tenant_id) as change:
        change.record("saml.refused", "saml_idp", idp_id, outcome="failure", reason=error.reason, message=error.text)
