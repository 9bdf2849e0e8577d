"""What is sent of a record: its fields by the names of the Elastic Common Schema (docs/siem.md has the table). Pure.

What the schema has no name for stands under `gatehouse`.
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
#: Syslog's (RFC 5424, 6.2.1).
_CRITICAL, _ERROR, _WARNING, _NOTICE, _INFO = 2, 3, 4, 5, 6

#: By what an action's name begins with; all others are `configuration`.
_CATEGORIES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("gateway",), "api"),
    **dict.fromkeys(("login", "session", "mfa", "oauth_token", "oauth_code", "saml"), "authentication"),
    **dict.fromkeys(("user", "group", "api_key", "oauth_client", "scim_token", "tenant"), "iam"),
}
#: By what it ends with; all others are `change`.
_TYPES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("created", "added", "registered", "issued", "imported"), "creation"),
    **dict.fromkeys(("deleted", "removed", "revoked"), "deletion"),
    **dict.fromkeys(("request",), "access"),
    **dict.fromkeys(("succeeded", "refreshed", "verified"), "start"),
    **dict.fromkeys(("ended",), "end"),
    **dict.fromkeys(("tested", "evaluated", "triggered", "health_checked", "failed", "mfa_required"), "info"),
    **dict.fromkeys(("refused", "denied", "reused", "refresh_reused"), "denied"),
}
_PEOPLE: Final = frozenset({"user", "api_key"})
#: A DLP event's severity: as a number, as the security apps of Elastic grade it, and as syslog's.
_SEVERITIES: Final[Mapping[str | None, tuple[int, int]]] = {
    "critical": (99, _CRITICAL), "high": (73, _ERROR), "medium": (47, _WARNING), "low": (21, _NOTICE),
}  # fmt: skip

_encode = msgspec.json.Encoder().encode


class Forwarded(NamedTuple):
    """An event as it is sent. `body` is JSON in one line; `severity` is syslog's."""

    id: UUID
    tenant_id: UUID
    at: datetime
    dataset: str
    action: str
    sequence: int | None
    severity: int
    body: bytes


def of_audit(row: Any) -> Forwarded:
    """`row` has the columns of `audit_events`."""
    begins, _, ends = row.action.rpartition(".") if "." in row.action else (row.action, "", "")
    succeeded = row.outcome == "success"
    types = [_TYPES.get(ends, "change")]
    if row.outcome == "refused" and "denied" not in types:
        types.append("denied")
    event = {
        "id": row.id,
        "kind": "event",
        "category": [_CATEGORIES.get(begins, "configuration")],
        "type": types,
        "outcome": "success" if succeeded else "failure",
        "reason": row.reason,
        "sequence": row.sequence,
        "hash": row.hash.hex(),
    }
    own = {
        "actor": {"id": row.actor_id, "type": row.actor_type},
        "outcome": row.outcome,
        "resource": {"type": row.resource_type, "id": row.resource_id},
        "target": {"provider": row.target_provider, "model": row.target_model},
        "details": row.details,
        "prev_hash": row.prev_hash.hex(),
    }
    user = row.actor_id if row.actor_type in _PEOPLE else None
    severity = _INFO if succeeded else _WARNING
    about = {"user": user, "request_id": row.request_id, "ip": row.ip}
    return _made("audit", row.action, row.tenant_id, row.id, row.timestamp, event, own, severity, about, row.sequence)


def of_dlp(tenant_id: UUID, body: Mapping[str, Any], at: datetime) -> Forwarded:
    """`body` has the columns of `dlp_events`."""
    severity, grade = _SEVERITIES.get(body["severity"], (0, _NOTICE))
    blocked = body["status"] in {"blocked", "cancelled"}
    event = {
        "id": body["id"],
        "kind": "alert",
        "category": ["intrusion_detection"],
        "type": ["denied" if blocked else "info"],
        "severity": severity,
    }
    rule = {"rule": {"id": body["rule_id"], "name": body["rule_name"]}}
    names = (
        "entity_type", "detector_type", "direction", "status", "action", "severity", "score", "match_count", "source",
    )  # fmt: skip
    own = {
        "dlp": {name: body[name] for name in names},
        "group_ids": body["group_ids"],
        "target": {"model": body["model"]},
    }
    about = {"user": body["user_id"], "request_id": body["request_id"]}
    action = f"dlp.{body['status']}"
    return _made("dlp", action, tenant_id, UUID(body["id"]), at, event, own, grade, about, more=rule)


def of_news(tenant_id: UUID, event_id: UUID, body: Mapping[str, Any], at: datetime) -> Forwarded:
    """An event of the outbox: `event_type` and `payload`."""
    event = {"id": event_id, "kind": "event", "category": ["configuration"], "type": ["info"]}
    own = {"payload": body["payload"]}
    return _made("event", body["event_type"], tenant_id, event_id, at, event, own, _NOTICE, {})


def of_test(tenant_id: UUID) -> Forwarded:
    event_id = new_id()
    event = {
        "id": event_id, "kind": "event", "category": ["configuration"], "type": ["info"], "outcome": "success",
    }  # fmt: skip
    return _made("test", "siem.test", tenant_id, event_id, utc_now(), event, {}, _INFO, {})


def _made(
    dataset: str,
    action: str,
    tenant_id: UUID,
    event_id: UUID,
    at: datetime,
    event: dict[str, Any],
    own: dict[str, Any],
    severity: int,
    about: Mapping[str, str | None],
    sequence: int | None = None,
    more: Mapping[str, Any] | None = None,
) -> Forwarded:
    whole: dict[str, Any] = {
        "@timestamp": iso(at),
        "ecs": {"version": ECS_VERSION},
        "event": {"module": "gatehouse", "dataset": f"gatehouse.{dataset}", "action": action, **event},
        "organization": {"id": tenant_id},
        "user": {"id": about.get("user")},
        "source": _source(about.get("ip")),
        "http": {"request": {"id": about.get("request_id")}},
        **(more or {}),
        "gatehouse": own,
    }
    body = _encode(_present(whole))
    return Forwarded(event_id, tenant_id, at, f"gatehouse.{dataset}", action, sequence, severity, body)


def _source(ip: str | None) -> dict[str, Any]:
    """The schema's `ip` takes addresses alone."""
    if ip is None:
        return {}
    try:
        return {"address": ip, "ip": str(ip_address(ip))}
    except ValueError:
        return {"address": ip}


def _present(whole: dict[str, Any]) -> dict[str, Any]:
    """Without what is not known, and objects in which nothing is. What stands in `details` and `payload` stays."""
    kept = {}
    for name, value in whole.items():
        if isinstance(value, dict) and name not in {"details", "payload"}:
            value = _present(value)
        if value is not None and value != {}:
            kept[name] = value
    return kept
