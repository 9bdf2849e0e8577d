"""Converts records to events with the field names of the Elastic Common Schema (table in docs/siem.md).

Fields without a name in the schema are under `gatehouse`. All functions are pure.
"""

from collections.abc import Mapping
from datetime import datetime
from ipaddress import ip_address
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from gatehouse.foundation.clock import iso, utc_now
from gatehouse.foundation.ids import new_id

ECS_VERSION: Final = "8.17.0"
#: severities of syslog (RFC 5424, 6.2.1)
_CRITICAL, _ERROR, _WARNING, _NOTICE, _INFO = 2, 3, 4, 5, 6

#: categories by the beginning of an action's name; all other actions are in `configuration`
_CATEGORIES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("gateway",), "api"),
    **dict.fromkeys(("login", "session", "mfa", "oauth_token", "oauth_code", "saml"), "authentication"),
    **dict.fromkeys(("user", "group", "api_key", "oauth_client", "scim_token", "tenant"), "iam"),
}
#: types by the end of an action's name; all other actions have the type `change`
_TYPES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("created", "added", "registered", "issued", "imported"), "creation"),
    **dict.fromkeys(("deleted", "removed", "revoked"), "deletion"),
    **dict.fromkeys(("request",), "access"),
    **dict.fromkeys(("succeeded", "refreshed", "verified"), "start"),
    **dict.fromkeys(("ended",), "end"),
    **dict.fromkeys(("tested", "evaluated", "triggered", "health_checked", "failed", "mfa_required"), "info"),
    **dict.fromkeys(("refused", "denied", "reused", "refresh_reused"), "denied"),
}
_USER_ACTOR_TYPES: Final = frozenset({"user", "api_key", "application"})
#: The severity of a DLP event as the number that Elastic's security apps use, and as the severity of syslog.
_SEVERITIES: Final[Mapping[str | None, tuple[int, int]]] = {
    "critical": (99, _CRITICAL), "high": (73, _ERROR), "medium": (47, _WARNING), "low": (21, _NOTICE),
}  # fmt: skip

_DLP_FIELDS: Final = (
    "entity_type", "detector_type", "direction", "status", "action", "severity", "score", "match_count", "source",
)  # fmt: skip
_NOTICE_EVENT: Final[Mapping[str, Any]] = {"kind": "event", "category": ["configuration"], "type": ["info"]}
_EMPTY: Final[Mapping[str, Any]] = {}
_FREE_FORM_FIELDS: Final = frozenset({"details", "payload"})

_encode = msgspec.json.Encoder().encode


class SiemEvent(NamedTuple):
    """An event for a SIEM. `body` is one line of JSON, `severity` is a severity of syslog, and `sequence` is the
    event's number in the audit chain."""

    id: UUID
    tenant_id: UUID
    at: datetime
    dataset: str
    action: str
    severity: int
    sequence: int | None = None
    body: bytes = b""


def of_audit(row: Any) -> SiemEvent:
    """Returns the SIEM event of an audit event. `row` has the columns of `audit_events`. `sequence` and the hashes are
    None before the audit event is in the chain."""
    subject, dot, verb = row.action.rpartition(".")
    succeeded = row.outcome == "success"
    types = [_TYPES.get(verb, "change") if dot else "change"]
    if row.outcome == "refused":
        types.append("denied")
    severity = _INFO if succeeded else _WARNING
    head = SiemEvent(
        row.id, row.tenant_id, row.timestamp, "gatehouse.audit", row.action, severity, row.sequence
    )  # fmt: skip
    event = {
        "kind": "event",
        "category": [_CATEGORIES.get(subject, "configuration")],
        "type": types,
        "outcome": "success" if succeeded else "failure",
        "reason": row.reason,
        "sequence": row.sequence,
        "hash": _hex(row.hash),
    }
    gatehouse_fields = {
        "actor": {"id": row.actor_id, "type": row.actor_type},
        "outcome": row.outcome,
        "resource": {"type": row.resource_type, "id": row.resource_id},
        "target": {"provider": row.target_provider, "model": row.target_model},
        "details": row.details,
        "prev_hash": _hex(row.prev_hash),
    }
    ecs_fields = {
        "user": {"id": row.actor_id if row.actor_type in _USER_ACTOR_TYPES else None},
        "source": _source(row.ip),
        "http": {"request": {"id": row.request_id}},
    }
    return _with_body(head, event, gatehouse_fields, ecs_fields)


def of_dlp(tenant_id: UUID, body: Mapping[str, Any], at: datetime) -> SiemEvent:
    """Returns the SIEM event of a DLP event. `body` has the columns of `dlp_events`."""
    score, severity = _SEVERITIES.get(body["severity"], (None, _NOTICE))
    head = SiemEvent(UUID(body["id"]), tenant_id, at, "gatehouse.dlp", f"dlp.{body['status']}", severity)
    blocked = body["status"] in {"blocked", "cancelled"}
    event = {
        "kind": "alert",
        "category": ["intrusion_detection"],
        "type": ["denied" if blocked else "info"],
        "severity": score,
    }
    gatehouse_fields = {
        "dlp": {name: body[name] for name in _DLP_FIELDS},
        "group_ids": body["group_ids"],
        "target": {"model": body["model"]},
    }
    ecs_fields = {
        "user": {"id": body["user_id"]},
        "rule": {"id": body["rule_id"], "name": body["rule_name"]},
        "http": {"request": {"id": body["request_id"]}},
    }
    return _with_body(head, event, gatehouse_fields, ecs_fields)


def of_outbox_event(tenant_id: UUID, event_id: UUID, body: Mapping[str, Any], at: datetime) -> SiemEvent:
    """Returns the SIEM event of an outbox event. `body` has the fields `event_type` and `payload`."""
    head = SiemEvent(event_id, tenant_id, at, "gatehouse.event", body["event_type"], _NOTICE)
    return _with_body(head, _NOTICE_EVENT, {"payload": body["payload"]})


def of_test(tenant_id: UUID) -> SiemEvent:
    head = SiemEvent(new_id(), tenant_id, utc_now(), "gatehouse.test", "siem.test", _INFO)
    return _with_body(head, _NOTICE_EVENT, {})


def _with_body(
    head: SiemEvent,
    event: Mapping[str, Any],
    gatehouse_fields: Mapping[str, Any],
    ecs_fields: Mapping[str, Any] = _EMPTY,
) -> SiemEvent:
    document = {
        "@timestamp": iso(head.at),
        "ecs": {"version": ECS_VERSION},
        "event": {
            "id": head.id, "module": "gatehouse", "dataset": head.dataset, "action": head.action, **event,
        },
        "organization": {"id": head.tenant_id},
        **ecs_fields,
        "gatehouse": gatehouse_fields,
    }  # fmt: skip
    return head._replace(body=_encode(_present(document)))


def _hex(digest: bytes | None) -> str | None:
    return None if digest is None else digest.hex()


def _source(ip: str | None) -> dict[str, Any]:
    """Returns the event's `source`. The schema's field `ip` accepts only IP addresses."""
    if ip is None:
        return {}
    try:
        return {"address": ip, "ip": str(ip_address(ip))}
    except ValueError:
        return {"address": ip}


def _present(document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the document without nulls and empty objects. `details` and `payload` are not changed."""
    present = {}
    for name, value in document.items():
        inner = _present(value) if isinstance(value, dict) and name not in _FREE_FORM_FIELDS else value
        if inner is not None and inner != {}:
            present[name] = inner
    return present
