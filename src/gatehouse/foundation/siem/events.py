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

_DLP: Final = (
    "entity_type", "detector_type", "direction", "status", "action", "severity", "score", "match_count", "source",
)  # fmt: skip
_NEWS: Final[Mapping[str, Any]] = {"kind": "event", "category": ["configuration"], "type": ["info"]}
_NOTHING: Final[Mapping[str, Any]] = {}
_FREE: Final = frozenset({"details", "payload"})

_encode = msgspec.json.Encoder().encode


class Forwarded(NamedTuple):
    """An event as it is sent. `body` is JSON in one line; `severity` is syslog's; `sequence` is the audit chain's."""

    id: UUID
    tenant_id: UUID
    at: datetime
    dataset: str
    action: str
    severity: int
    sequence: int | None = None
    body: bytes = b""


def of_audit(row: Any) -> Forwarded:
    """`row` has the columns of `audit_events`; None where it has no place in a chain yet."""
    begins, dot, ends = row.action.rpartition(".")
    succeeded = row.outcome == "success"
    types = [_TYPES.get(ends, "change") if dot else "change"]
    if row.outcome == "refused":
        types.append("denied")
    severity = _INFO if succeeded else _WARNING
    head = Forwarded(
        row.id, row.tenant_id, row.timestamp, "gatehouse.audit", row.action, severity, row.sequence
    )  # fmt: skip
    event = {
        "kind": "event",
        "category": [_CATEGORIES.get(begins, "configuration")],
        "type": types,
        "outcome": "success" if succeeded else "failure",
        "reason": row.reason,
        "sequence": row.sequence,
        "hash": _hex(row.hash),
    }
    own = {
        "actor": {"id": row.actor_id, "type": row.actor_type},
        "outcome": row.outcome,
        "resource": {"type": row.resource_type, "id": row.resource_id},
        "target": {"provider": row.target_provider, "model": row.target_model},
        "details": row.details,
        "prev_hash": _hex(row.prev_hash),
    }
    about = {
        "user": {"id": row.actor_id if row.actor_type in _PEOPLE else None},
        "source": _source(row.ip),
        "http": {"request": {"id": row.request_id}},
    }
    return _written(head, event, own, about)


def of_dlp(tenant_id: UUID, body: Mapping[str, Any], at: datetime) -> Forwarded:
    """`body` has the columns of `dlp_events`."""
    grade, severity = _SEVERITIES.get(body["severity"], (None, _NOTICE))
    head = Forwarded(UUID(body["id"]), tenant_id, at, "gatehouse.dlp", f"dlp.{body['status']}", severity)
    blocked = body["status"] in {"blocked", "cancelled"}
    event = {
        "kind": "alert",
        "category": ["intrusion_detection"],
        "type": ["denied" if blocked else "info"],
        "severity": grade,
    }
    own = {
        "dlp": {name: body[name] for name in _DLP},
        "group_ids": body["group_ids"],
        "target": {"model": body["model"]},
    }
    about = {
        "user": {"id": body["user_id"]},
        "rule": {"id": body["rule_id"], "name": body["rule_name"]},
        "http": {"request": {"id": body["request_id"]}},
    }
    return _written(head, event, own, about)


def of_news(tenant_id: UUID, event_id: UUID, body: Mapping[str, Any], at: datetime) -> Forwarded:
    """An event of the outbox: `event_type` and `payload`."""
    head = Forwarded(event_id, tenant_id, at, "gatehouse.event", body["event_type"], _NOTICE)
    return _written(head, _NEWS, {"payload": body["payload"]})


def of_test(tenant_id: UUID) -> Forwarded:
    head = Forwarded(new_id(), tenant_id, utc_now(), "gatehouse.test", "siem.test", _INFO)
    return _written(head, _NEWS, {})


def _written(
    head: Forwarded, event: Mapping[str, Any], own: Mapping[str, Any], about: Mapping[str, Any] = _NOTHING
) -> Forwarded:
    whole = {
        "@timestamp": iso(head.at),
        "ecs": {"version": ECS_VERSION},
        "event": {
            "id": head.id, "module": "gatehouse", "dataset": head.dataset, "action": head.action, **event,
        },
        "organization": {"id": head.tenant_id},
        **about,
        "gatehouse": own,
    }  # fmt: skip
    return head._replace(body=_encode(_present(whole)))


def _hex(digest: bytes | None) -> str | None:
    return None if digest is None else digest.hex()


def _source(ip: str | None) -> dict[str, Any]:
    """The schema's `ip` takes addresses alone."""
    if ip is None:
        return {}
    try:
        return {"address": ip, "ip": str(ip_address(ip))}
    except ValueError:
        return {"address": ip}


def _present(whole: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is not known, and objects in which nothing is. What stands in `details` and `payload` stays."""
    kept = {}
    for name, value in whole.items():
        inner = _present(value) if isinstance(value, dict) and name not in _FREE else value
        if inner is not None and inner != {}:
            kept[name] = inner
    return kept
