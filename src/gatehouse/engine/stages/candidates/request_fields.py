"""Refuses calls with fields that the organization does not allow (docs/request-fields.md).

Every candidate is judged, because the table depends on the kind of provider (local servers have fewer guards), and a
translated call has none."""

from typing import Final

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.exchange import CallRequest
from gatehouse.engine.fields.naming import Field, file_references, guard_of, printable, uncommon
from gatehouse.engine.fields.tables import ALL_TOOLS, FILE_ID, LEFT_OUT_TOOLS, NO_GUARDS, OPENAI_CHAT, TOOLS, Guards
from gatehouse.engine.ports import Ports
from gatehouse.engine.providers.kind import ProviderNotConfigured, offer_to
from gatehouse.engine.providers.registry import KINDS
from gatehouse.engine.records.outcome import RuleEvent
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.foundation.errors import BadRequest
from gatehouse.policy.catalog import Candidate

#: Value of the field `kind` in the events.
KIND: Final = "request_field"
_FILE_ID_BYTES: Final = FILE_ID.encode()
_ESCAPE: Final = b"\\u"
#: Maximum number of unknown fields in the record of a request.
_MAX_RECORDED_FIELDS: Final = 16
#: The `reason` for a field that no table lists.
_UNKNOWN: Final = "is unknown to the gateway"
#: All reasons for which a field can be refused.
REASONS: Final = (*dict.fromkeys(guard.reason for guard in OPENAI_CHAT.values()), _UNKNOWN)
_HOW: Final = "An administrator can allow it with PUT /api/v1/admin/org/request-fields."


class FieldNotAllowed(BadRequest):
    code = "field_not_allowed"

    @classmethod
    def because(cls, field: Field, name: str, reason: str) -> "FieldNotAllowed":
        return cls(f"The field `{name}` {reason}, which your organization does not allow. {_HOW}", param=field.path)


def judge(x: CallRequest, candidate: Candidate, ports: Ports) -> Verdict:
    fields = x.derived.fields
    if fields is None:
        fields = uncommon(x.call.dialect, x.call.body)
        if _may_refer_to_files(x.call.raw_body):
            fields = (*fields, *file_references(x.call.body))
        x.derived.fields = fields
        if fields:
            _record_unknown(x, fields)
    if not fields:
        return ALLOW
    guards, allowed = _guards(x, candidate), x.identified.policy.allowed_fields
    left_out = LEFT_OUT_TOOLS.get(x.call.dialect, frozenset())
    for field in fields:
        guarded = guard_of(field.name, guards)
        if guarded is None:
            if ports.unknown_fields == "refuse" and _unknown(field) and field.name not in allowed:
                return _refusal(x, candidate, field, printable(field.name), _UNKNOWN)
            continue
        name, guard = guarded
        if name in left_out and x.call.native is not None and x.call.native.left_out:
            continue
        if guard.passes(field.value) or name in allowed or (name.startswith(TOOLS) and ALL_TOOLS in allowed):
            continue
        return _refusal(x, candidate, field, name, guard.reason)
    return ALLOW


def reason_of(name: str) -> str:
    """Return the reason for which a field with this name is refused."""
    guarded = guard_of(name, OPENAI_CHAT)
    return _UNKNOWN if guarded is None else guarded[1].reason


def _guards(x: CallRequest, candidate: Candidate) -> Guards:
    """Return the table of the candidate's provider. It is empty if the call is translated into the provider's dialect,
    because a translated call has only known fields."""
    kind, client = KINDS.get(candidate.provider.kind), DIALECTS[x.call.dialect]
    if kind is None:
        return NO_GUARDS
    try:
        offered = offer_to(kind, client, candidate.provider.config, candidate.model.model_id)
    except ProviderNotConfigured:
        return NO_GUARDS
    return kind.guards if offered is not None and offered.dialect == client.name else NO_GUARDS


def _may_refer_to_files(came: bytes) -> bool:
    """Return whether the client's bytes may have a `file_id`, also with escapes. The search is faster than reading all
    messages."""
    return _FILE_ID_BYTES in came or _ESCAPE in came


def _unknown(field: Field) -> bool:
    return guard_of(field.name, OPENAI_CHAT) is None


def _refusal(x: CallRequest, candidate: Candidate, field: Field, name: str, reason: str) -> Refuse:
    event = _event(name, "BLOCK", f"{candidate.provider.id}/{candidate.model.model_id}")
    if event not in x.rule_events:
        x.rule_events.append(event)
    return Refuse(FieldNotAllowed.because(field, name, reason))


def _record_unknown(x: CallRequest, fields: tuple[Field, ...]) -> None:
    names = dict.fromkeys(printable(field.name) for field in fields if _unknown(field))
    x.rule_events.extend(_event(name, "LOG", None) for name in list(names)[:_MAX_RECORDED_FIELDS])


def _event(name: str, action: str, model: str | None) -> RuleEvent:
    return RuleEvent(kind=KIND, rule_id=name, rule_name="Request fields", action=action, result="matched", model=model)
