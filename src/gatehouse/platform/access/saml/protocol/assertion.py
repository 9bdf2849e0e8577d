"""Reads a verified assertion and checks its audience, validity and subject (SAML Profiles, 4.1.4)."""

from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from gatehouse.platform.access.saml.errors import AssertionExpired, InvalidSignature, UnknownIssuer
from gatehouse.platform.access.saml.protocol import trust
from gatehouse.platform.access.saml.protocol.messages import ASSERTION, NAMESPACES
from gatehouse.platform.access.saml.protocol.service_provider import ServiceProvider
from gatehouse.platform.access.saml.protocol.trust import Element, find_one, text_of

#: Accepted difference between the clocks of the provider and of this platform (docs/saml.md).
MAX_CLOCK_SKEW: Final = timedelta(minutes=5)

#: Maximum validity of an assertion. Some providers write the last representable time.
_MAX_VALIDITY: Final = timedelta(days=366)

_BEARER: Final = "urn:oasis:names:tc:SAML:2.0:cm:bearer"
_SUPPORTED_CONDITIONS: Final = {
    f"{{{ASSERTION}}}{name}" for name in ("AudienceRestriction", "OneTimeUse", "ProxyRestriction")
}
_NAME_ID_ATTRIBUTES: Final = ("Format", "NameQualifier", "SPNameQualifier", "SPProvidedID")


class SamlAssertion(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a verified assertion.

    `attributes` maps attribute names to their values. `expires_at` is the end of the assertion's validity, including
    clock skew. `session_expires_at` is the time at which the provider requires the session to end."""

    id: str
    expires_at: datetime
    name_id: str
    name_id_attributes: dict[str, str]
    session_index: str | None
    session_expires_at: datetime | None
    attributes: dict[str, list[str]]


def read(
    response: trust.Response, *, issuer: str, request_id: str | None, sp: ServiceProvider, now: datetime
) -> SamlAssertion:
    """Return the contents of the response's assertion. `request_id` is None for a sign-in that began at the provider.

    Raises `UnknownIssuer`, `InvalidSignature` if the assertion is not addressed to this platform, `AssertionExpired` if
    it is not valid now."""
    root, assertion = response.root, response.assertion
    _check_issuer(issuer, find_one(root, "saml:Issuer"), required=False)
    _check_issuer(issuer, find_one(assertion, "saml:Issuer"), required=True)
    if root.get("Destination", sp.acs_url) != sp.acs_url:
        raise InvalidSignature("The answer was meant for another address.")
    if root.get("InResponseTo", request_id) != request_id:
        raise InvalidSignature("The answer and its assertion belong to different requests.")
    subject = find_one(assertion, "saml:Subject")
    if subject is None:
        raise InvalidSignature("The assertion has no subject.")
    expires_at = _subject_expires_at(subject, request_id, sp, now)
    _check_conditions(find_one(assertion, "saml:Conditions"), sp, now)
    if _is_too_early(assertion.get("IssueInstant"), now):
        raise AssertionExpired
    name_id = find_one(subject, "saml:NameID")
    session_index, session_expires_at = _session_index_and_expiry(assertion, now)
    return SamlAssertion(
        id=assertion.get("ID"),
        expires_at=min(expires_at, now + _MAX_VALIDITY) + MAX_CLOCK_SKEW,
        name_id=text_of(name_id),
        name_id_attributes={} if name_id is None else _present_attributes(name_id),
        session_index=session_index,
        session_expires_at=session_expires_at,
        attributes=_attributes(assertion),
    )


def check_time(message: Element, now: datetime) -> None:
    """Check the times of a message without an assertion. Raises `AssertionExpired`."""
    issued = message.get("IssueInstant")
    if _is_too_early(issued, now) or _is_too_late(issued, now) or _is_too_late(message.get("NotOnOrAfter"), now):
        raise AssertionExpired


def _present_attributes(name_id: Element) -> dict[str, str]:
    return {name: value for name in _NAME_ID_ATTRIBUTES if (value := name_id.get(name))}


def _check_issuer(expected: str, issuer: Element | None, *, required: bool) -> None:
    if (issuer is not None or required) and text_of(issuer) != expected:
        raise UnknownIssuer


def _subject_expires_at(subject: Element, request_id: str | None, sp: ServiceProvider, now: datetime) -> datetime:
    """Return the time at which the subject confirmation expires. One bearer confirmation must match recipient, request
    and time.

    Raises `AssertionExpired`, `InvalidSignature`."""
    expired = False
    for confirmation in subject.findall("saml:SubjectConfirmation", NAMESPACES):
        data = find_one(confirmation, "saml:SubjectConfirmationData")
        if confirmation.get("Method") != _BEARER or data is None or data.get("NotOnOrAfter") is None:
            continue
        if data.get("Recipient") != sp.acs_url or data.get("InResponseTo") != request_id:
            continue
        expires_at = _parse_time(data.get("NotOnOrAfter"))
        if _is_too_early(data.get("NotBefore"), now) or now - MAX_CLOCK_SKEW >= expires_at:
            expired = True
            continue
        return expires_at
    raise AssertionExpired if expired else InvalidSignature("The assertion was not made for this platform and request.")


def _check_conditions(conditions: Element | None, sp: ServiceProvider, now: datetime) -> None:
    if conditions is None:
        raise InvalidSignature("The assertion has no audience.")
    if any(condition.tag not in _SUPPORTED_CONDITIONS for condition in conditions):
        raise InvalidSignature("The assertion has a condition that is not supported.")
    restrictions = conditions.findall("saml:AudienceRestriction", NAMESPACES)
    audiences = [{text_of(name) for name in part.findall("saml:Audience", NAMESPACES)} for part in restrictions]
    if not audiences or any(sp.entity_id not in audience for audience in audiences):
        raise InvalidSignature("The assertion is for another audience.")
    if _is_too_early(conditions.get("NotBefore"), now) or _is_too_late(conditions.get("NotOnOrAfter"), now):
        raise AssertionExpired


def _session_index_and_expiry(assertion: Element, now: datetime) -> tuple[str | None, datetime | None]:
    """Return the index of the provider's session and the time at which it ends. No clock skew is accepted, because a
    session that has ended already could not be used. Raises `InvalidSignature`, `AssertionExpired`."""
    statements = assertion.findall("saml:AuthnStatement", NAMESPACES)
    if not statements:
        raise InvalidSignature("The assertion has no AuthnStatement.")
    ends = [_parse_time(end) for statement in statements if (end := statement.get("SessionNotOnOrAfter"))]
    if any(end <= now for end in ends):
        raise AssertionExpired
    indexes = [index for statement in statements if (index := statement.get("SessionIndex"))]
    return next(iter(indexes), None), min(ends, default=None)


def _attributes(assertion: Element) -> dict[str, list[str]]:
    attributes: dict[str, list[str]] = {}
    for attribute in assertion.findall("saml:AttributeStatement/saml:Attribute", NAMESPACES):
        values = [text_of(value) for value in attribute.findall("saml:AttributeValue", NAMESPACES)]
        attributes.setdefault(attribute.get("Name"), []).extend(value for value in values if value)
    return attributes


def _is_too_early(moment: str | None, now: datetime) -> bool:
    return moment is not None and now + MAX_CLOCK_SKEW < _parse_time(moment)


def _is_too_late(moment: str | None, now: datetime) -> bool:
    return moment is not None and now - MAX_CLOCK_SKEW >= _parse_time(moment)


def _parse_time(text: str) -> datetime:
    """Return the parsed time. A time without a zone is UTC, as SAML requires. Raises `InvalidSignature`."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidSignature("A time in the assertion cannot be read.") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
