"""Refuses calls with fields that the organization does not allow (docs/request-fields.md).

Every candidate is judged, because the table of guards depends on the kind of provider (local servers have fewer
guards), and a converted call has no guards."""

import re
from typing import Any, Final

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.dialects.openai_responses.native import NATIVE_OPERATIONS
from gatehouse.engine.exchange import CallRequest, computed_once
from gatehouse.engine.fields.naming import WITH_ITEMS, Field, guard_of, printable, references, tool_references, uncommon
from gatehouse.engine.fields.tables import (
    ALL_TOOLS,
    CONTAINER,
    FILE_ID,
    KEPT_CONTAINER,
    LEFT_OUT_TOOLS,
    NEVER_ALLOWED,
    NO_GUARDS,
    OPENAI_CHAT,
    PREVIOUS_RESPONSE,
    TOOLS,
    Guards,
)
from gatehouse.engine.ports import Ports
from gatehouse.engine.providers.kind import ProviderNotConfigured, offer_to
from gatehouse.engine.providers.registry import KINDS
from gatehouse.engine.records.outcome import RuleEvent
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.foundation.errors import BadRequest, NotFound, Refusal
from gatehouse.policy.catalog import Candidate

#: Value of the field `kind` in the events.
KIND: Final = "request_field"
#: Bytes of every body with the id of a stored object other than a file, by the client's dialect.
_SIGNS: Final = {"openai_chat": b'"audio"', **dict.fromkeys(WITH_ITEMS, b"container_id")}
#: Maximum number of unknown fields in the record of a request.
_MAX_RECORDED_FIELDS: Final = 16
#: The `reason` for a field that no table lists.
_UNKNOWN: Final = "is unknown to the gateway"
#: All reasons for which a field can be refused.
REASONS: Final = (*dict.fromkeys(guard.reason for guard in OPENAI_CHAT.values()), _UNKNOWN)
#: The form of the ids of files of `/v1/files`: UUIDs of version 7. Other vendors' ids of files do not have it.
_GATEWAY_FILE: Final = re.compile(r"file-[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}\Z")
_HOW: Final = "An administrator can allow it with PUT /api/v1/admin/org/request-fields."


class FieldNotAllowed(BadRequest):
    code = "field_not_allowed"

    @classmethod
    def because(cls, field: Field, name: str, reason: str) -> "FieldNotAllowed":
        return cls(f"The field `{name}` {reason}, which your organization does not allow. {_HOW}", param=field.path)


class StateNotAvailable(BadRequest):
    """The field continues content that the provider stores, and the gateway cannot tell whose content it is."""

    code = "field_not_allowed"

    @classmethod
    def because(cls, field: Field) -> "StateNotAvailable":
        return cls(
            f"The field `{printable(field.name)}` continues a conversation that the provider stores, which may be"
            " another user's. Leave it out and send the messages, or use `previous_response_id` in /v1/responses.",
            param=field.path,
        )


class FileOfGateway(NotFound):
    """The id is that of a file of `/v1/files`, of any user. No provider has these files."""

    code = "file_not_found"
    message = (
        "Model calls cannot refer to files of this gateway's /v1/files, which are for batches only. Put the content"
        " into the message."
    )


def judge(x: CallRequest, candidate: Candidate, ports: Ports) -> Verdict:
    fields = fields_to_check(x)
    return ALLOW if not fields else _judge_fields(x, candidate, fields, ports)


@computed_once
def fields_to_check(x: CallRequest) -> tuple[Field, ...]:
    """Return the uncommon fields of a call, and the ids of stored objects in it."""
    call = x.call
    dialect, body, came = call.dialect, call.body, call.raw_body
    fields = uncommon(dialect, body)
    sign = _SIGNS.get(dialect)
    # A search in the client's bytes is faster than reading all messages. A name with escapes is also found.
    if fields or b"file_id" in came or b"\\u" in came or (sign is not None and sign in came):
        # Only hosted tools, which are uncommon fields, refer to stored objects.
        left_out = call.options.left_out
        of_tools = tool_references(dialect, body, left_out) if fields else ()
        return (*fields, *of_tools, *references(dialect, body))
    return fields


def _judge_fields(x: CallRequest, candidate: Candidate, fields: tuple[Field, ...], ports: Ports) -> Verdict:
    _record_unknown(x, fields)
    guards, allowed, options = _guards(x, candidate), x.identified.policy.allowed_fields, x.call.options
    left_out = LEFT_OUT_TOOLS.get(x.call.dialect, frozenset()) if options.left_out else frozenset()
    containers = options.containers
    for field in fields:
        made_by = containers.get(_container_id(field.value)) if containers and field.name == CONTAINER else None
        if made_by is not None and made_by != candidate.provider.id:
            # The id is valid at the provider that made the container only.
            return _refusal(x, candidate, field, CONTAINER, FieldNotAllowed.because(field, CONTAINER, KEPT_CONTAINER))
        if field.name == FILE_ID and _is_gateway_file(field.value):
            return _refusal(x, candidate, field, FILE_ID, FileOfGateway(param=field.path))
        if _is_unbound_state(x, field):
            return _refusal(x, candidate, field, printable(field.name), StateNotAvailable.because(field))
        guarded = guard_of(field.name, guards)
        if guarded is None:
            if ports.unknown_fields == "refuse" and _unknown(field) and field.name not in allowed:
                name = printable(field.name)
                return _refusal(x, candidate, field, name, FieldNotAllowed.because(field, name, _UNKNOWN))
            continue
        name, guard = guarded
        if name in left_out or (made_by is not None and _names_only_id(field.value)):
            continue
        if guard.passes(field.value) or name in allowed or (name.startswith(TOOLS) and ALL_TOOLS in allowed):
            continue
        return _refusal(x, candidate, field, name, FieldNotAllowed.because(field, name, guard.reason))
    return ALLOW


def reason_of(name: str) -> str:
    """Return the reason for which a field with this name is refused."""
    guarded = guard_of(name, OPENAI_CHAT)
    return _UNKNOWN if guarded is None else guarded[1].reason


def _guards(x: CallRequest, candidate: Candidate) -> Guards:
    """Return the table of the candidate's provider. It is empty if the call is converted to the provider's dialect,
    because a converted call has only known fields."""
    kind, client = KINDS.get(candidate.provider.kind), DIALECTS[x.call.dialect]
    if kind is None:
        return NO_GUARDS
    try:
        offered = offer_to(kind, client, candidate.provider.config, candidate.model.model_id)
    except ProviderNotConfigured:
        return NO_GUARDS
    return kind.guards if offered is not None and offered.dialect == client.name else NO_GUARDS


def _is_gateway_file(value: Any) -> bool:
    """Return whether a file's id, or one of several, is that of a file of the gateway."""
    ids = value if type(value) is list else (value,)
    return any(type(file_id) is str and _GATEWAY_FILE.match(file_id) for file_id in ids)


def _container_id(container: Any) -> str:
    """Return the id in the value of a field that names a container; empty for any other value."""
    if type(container) is dict:
        container = container.get("id")
    return container if type(container) is str else ""


def _names_only_id(container: Any) -> bool:
    """Return whether the value of a field names a container and nothing else, for example no skills."""
    return type(container) is not dict or not any(value for name, value in container.items() if name != "id")


def _is_unbound_state(x: CallRequest, field: Field) -> bool:
    """Return whether a field continues stored content that the gateway cannot bind to the caller."""
    guarded = guard_of(field.name, OPENAI_CHAT)
    if guarded is None or guarded[1].passes(field.value):
        return False
    return guarded[0] in NEVER_ALLOWED or (guarded[0] == PREVIOUS_RESPONSE and x.call.dialect not in NATIVE_OPERATIONS)


def _unknown(field: Field) -> bool:
    return guard_of(field.name, OPENAI_CHAT) is None


def _refusal(x: CallRequest, candidate: Candidate, field: Field, name: str, error: Refusal) -> Refuse:
    event = _event(name, "BLOCK", f"{candidate.provider.id}/{candidate.model.model_id}")
    if event not in x.rule_events:
        x.rule_events.append(event)
    return Refuse(error)


def _record_unknown(x: CallRequest, fields: tuple[Field, ...]) -> None:
    """Record the unknown fields, once for all candidates."""
    names = dict.fromkeys(printable(field.name) for field in fields if _unknown(field))
    events = [_event(name, "LOG", None) for name in list(names)[:_MAX_RECORDED_FIELDS]]
    x.rule_events.extend([event for event in events if event not in x.rule_events])


def _event(name: str, action: str, model: str | None) -> RuleEvent:
    return RuleEvent(kind=KIND, rule_id=name, rule_name="Request fields", action=action, result="matched", model=model)
