"""What a verified assertion says: to whom, for how long, about whom (SAML Profiles, 4.1.4)."""

from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from gatehouse.platform.access.saml import trust
from gatehouse.platform.access.saml.errors import AssertionExpired, InvalidSignature, UnknownIssuer
from gatehouse.platform.access.saml.messages import ASSERTION, NAMESPACES
from gatehouse.platform.access.saml.service_provider import ServiceProvider
from gatehouse.platform.access.saml.trust import Element, one, text_of

#: Clocks may differ by this much (reference 2, SAML).
SKEW: Final = timedelta(minutes=5)

#: Some providers write the last moment there is.
_LONGEST: Final = timedelta(days=366)

_BEARER: Final = "urn:oasis:names:tc:SAML:2.0:cm:bearer"
_KNOWN_CONDITIONS: Final = {f"{{{ASSERTION}}}{n}" for n in ("AudienceRestriction", "OneTimeUse", "ProxyRestriction")}
_QUALIFIERS: Final = ("Format", "NameQualifier", "SPNameQualifier", "SPProvidedID")


class Assertion(msgspec.Struct, frozen=True, kw_only=True):
    """`attributes` are values by name, as they stand there; `until` is when it can be believed no more, `session_until`
    when the provider wants a session to be over."""

    id: str
    until: datetime
    name_id: str
    name_id_attributes: dict[str, str]
    session_index: str | None
    session_until: datetime | None
    attributes: dict[str, list[str]]


def read(
    response: trust.Response, *, issuer: str, request_id: str | None, sp: ServiceProvider, now: datetime
) -> Assertion:
    """`request_id` is None for a sign-in that began at the provider.

    Raises `UnknownIssuer`, `InvalidSignature` where it is not said to us, `AssertionExpired` where not for now."""
    root, assertion = response.root, response.assertion
    _from(issuer, one(root, "saml:Issuer"), required=False)
    _from(issuer, one(assertion, "saml:Issuer"), required=True)
    if root.get("Destination", sp.acs_url) != sp.acs_url:
        raise InvalidSignature("The answer was meant for another address.")
    if root.get("InResponseTo", request_id) != request_id:
        raise InvalidSignature("The answer and its assertion are of different requests.")
    subject = one(assertion, "saml:Subject")
    if subject is None:
        raise InvalidSignature("The assertion is about nobody.")
    until = _confirmed(subject, request_id, sp, now)
    _conditions(one(assertion, "saml:Conditions"), sp, now)
    if _early(assertion.get("IssueInstant"), now):
        raise AssertionExpired
    name_id = one(subject, "saml:NameID")
    session_index, session_until = _authenticated(assertion, now)
    return Assertion(
        id=assertion.get("ID"),
        until=min(until, now + _LONGEST) + SKEW,
        name_id=text_of(name_id),
        name_id_attributes={} if name_id is None else {n: name_id.get(n) for n in _QUALIFIERS if name_id.get(n)},
        session_index=session_index,
        session_until=session_until,
        attributes=_attributes(assertion),
    )


def check_moment(message: Element, now: datetime) -> None:
    """Of a message without an assertion. Raises `AssertionExpired`."""
    issued = message.get("IssueInstant")
    if _early(issued, now) or _late(issued, now) or _late(message.get("NotOnOrAfter"), now):
        raise AssertionExpired


def _from(expected: str, issuer: Element | None, *, required: bool) -> None:
    if (issuer is not None or required) and text_of(issuer) != expected:
        raise UnknownIssuer


def _confirmed(subject: Element, request_id: str | None, sp: ServiceProvider, now: datetime) -> datetime:
    """Until when whoever brings the assertion may be its subject: one confirmation must fit in everything."""
    expired = False
    for confirmation in subject.findall("saml:SubjectConfirmation", NAMESPACES):
        data = one(confirmation, "saml:SubjectConfirmationData")
        if confirmation.get("Method") != _BEARER or data is None or data.get("NotOnOrAfter") is None:
            continue
        if data.get("Recipient") != sp.acs_url or data.get("InResponseTo") != request_id:
            continue
        until = _moment(data.get("NotOnOrAfter"))
        if _early(data.get("NotBefore"), now) or now - SKEW >= until:
            expired = True
            continue
        return until
    raise AssertionExpired if expired else InvalidSignature("The assertion was not made for this platform and request.")


def _conditions(conditions: Element | None, sp: ServiceProvider, now: datetime) -> None:
    if conditions is None:
        raise InvalidSignature("The assertion names no audience.")
    if any(condition.tag not in _KNOWN_CONDITIONS for condition in conditions):
        raise InvalidSignature("The assertion has a condition that is not known.")
    restrictions = conditions.findall("saml:AudienceRestriction", NAMESPACES)
    audiences = [{text_of(each) for each in part.findall("saml:Audience", NAMESPACES)} for part in restrictions]
    if not audiences or any(sp.entity_id not in audience for audience in audiences):
        raise InvalidSignature("The assertion is for another audience.")
    if _early(conditions.get("NotBefore"), now) or _late(conditions.get("NotOnOrAfter"), now):
        raise AssertionExpired


def _authenticated(assertion: Element, now: datetime) -> tuple[str | None, datetime | None]:
    """The index of the provider's session, and when sessions that come of it end: to the moment, whatever clocks say,
    for one that is over already could not be used."""
    statements = assertion.findall("saml:AuthnStatement", NAMESPACES)
    if not statements:
        raise InvalidSignature("The assertion does not say that anybody signed in.")
    ends = [_moment(end) for statement in statements if (end := statement.get("SessionNotOnOrAfter"))]
    if any(end <= now for end in ends):
        raise AssertionExpired
    indexes = [index for statement in statements if (index := statement.get("SessionIndex"))]
    return next(iter(indexes), None), min(ends, default=None)


def _attributes(assertion: Element) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for attribute in assertion.findall("saml:AttributeStatement/saml:Attribute", NAMESPACES):
        values = [text_of(value) for value in attribute.findall("saml:AttributeValue", NAMESPACES)]
        found.setdefault(attribute.get("Name"), []).extend(value for value in values if value)
    return found


def _early(moment: str | None, now: datetime) -> bool:
    return moment is not None and now + SKEW < _moment(moment)


def _late(moment: str | None, now: datetime) -> bool:
    return moment is not None and now - SKEW >= _moment(moment)


def _moment(text: str) -> datetime:
    """Without a zone it is UTC, as all of SAML's are."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidSignature("A time in the assertion cannot be read.") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
