"""The fields of the Elastic Common Schema (see the table in docs/siem.md)."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import msgspec
import pytest

from gatehouse.foundation.siem.events import SiemEvent, of_audit, of_dlp, of_outbox_event
from gatehouse.platform.changes.chain.actions import ACTIONS

TENANT, ID = UUID(int=1), UUID(int=2)
AT = datetime(2026, 3, 4, 5, 6, 7, 890000, UTC)

#: Values that the schema allows (https://www.elastic.co/docs/reference/ecs).
CATEGORIES = {"api", "authentication", "configuration", "iam", "intrusion_detection"}
TYPES = {"access", "change", "creation", "deletion", "denied", "end", "info", "start"}


def audit(**changed: Any) -> SiemEvent:
    row = {
        "tenant_id": TENANT, "sequence": 9, "id": ID, "timestamp": AT, "actor_id": "someone", "actor_type": "user",
        "action": "api_key.created", "resource_type": "api_key", "resource_id": "k", "request_id": "r",
        "ip": "203.0.113.7", "outcome": "success", "target_provider": None, "target_model": None, "reason": None,
        "details": {"a": None, "b": {}}, "prev_hash": b"\x01", "hash": b"\x02",
    }  # fmt: skip
    return of_audit(SimpleNamespace(**{**row, **changed}))


def fields(event: SiemEvent) -> dict[str, Any]:
    return _flat(msgspec.json.decode(event.body))


def _flat(value: dict[str, Any], before: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, inner in value.items():
        whole = before + name
        if isinstance(inner, dict) and name not in {"details", "payload"}:
            flat |= _flat(inner, f"{whole}.")
        else:
            flat[whole] = inner
    return flat


def test_an_audit_event() -> None:
    assert fields(audit()) == {
        "@timestamp": "2026-03-04T05:06:07.890000Z",
        "ecs.version": "8.17.0",
        "event.id": str(ID),
        "event.module": "gatehouse",
        "event.dataset": "gatehouse.audit",
        "event.action": "api_key.created",
        "event.kind": "event",
        "event.category": ["iam"],
        "event.type": ["creation"],
        "event.outcome": "success",
        "event.sequence": 9,
        "event.hash": "02",
        "organization.id": str(TENANT),
        "user.id": "someone",
        "source.address": "203.0.113.7",
        "source.ip": "203.0.113.7",
        "http.request.id": "r",
        "gatehouse.actor.id": "someone",
        "gatehouse.actor.type": "user",
        "gatehouse.outcome": "success",
        "gatehouse.resource.type": "api_key",
        "gatehouse.resource.id": "k",
        "gatehouse.details": {"a": None, "b": {}},
        "gatehouse.prev_hash": "01",
    }


def test_a_refused_request() -> None:
    event_fields = fields(
        audit(
            action="gateway.request", outcome="refused", actor_type="oauth_client", target_provider="openai",
            target_model="gpt", reason="dlp_violation", ip="nowhere",
        )
    )  # fmt: skip
    assert event_fields["event.category"] == ["api"]
    assert event_fields["event.type"] == ["access", "denied"]
    assert (event_fields["event.outcome"], event_fields["gatehouse.outcome"]) == ("failure", "refused")
    assert event_fields["event.reason"] == "dlp_violation"
    assert (event_fields["gatehouse.target.provider"], event_fields["gatehouse.target.model"]) == ("openai", "gpt")
    # Machines are not in the field for users, and texts that are no addresses are not in the field for addresses.
    assert "user.id" not in event_fields
    assert (event_fields["source.address"], event_fields.get("source.ip")) == ("nowhere", None)


@pytest.mark.parametrize(
    ("status", "severity", "kind", "grade", "syslog"),
    [("blocked", "critical", "denied", 99, 2), ("redacted", "medium", "info", 47, 4), ("logged", "low", "info", 21, 5)],
)
def test_a_dlp_event(status: str, severity: str, kind: str, grade: int, syslog: int) -> None:
    body = {
        "id": str(ID), "request_id": "r", "user_id": "someone", "group_ids": ["g"], "rule_id": "rule",
        "rule_name": "Cards", "detector_type": "regex", "entity_type": "credit_card", "direction": "input",
        "status": status, "score": 0.5, "match_count": 2, "model": "m", "action": "block", "severity": severity,
        "source": "platform",
    }  # fmt: skip
    event = of_dlp(TENANT, body, AT)
    assert event.severity == syslog
    event_fields = fields(event)
    assert event_fields["event.kind"] == "alert"
    assert (event_fields["event.action"], event_fields["event.type"], event_fields["event.severity"]) == (
        f"dlp.{status}",
        [kind],
        grade,
    )
    assert (event_fields["rule.id"], event_fields["rule.name"], event_fields["user.id"]) == ("rule", "Cards", "someone")
    assert event_fields["gatehouse.dlp.entity_type"] == "credit_card"
    assert (event_fields["gatehouse.target.model"], event_fields["gatehouse.group_ids"]) == ("m", ["g"])


def test_an_event_of_the_outbox() -> None:
    event_fields = fields(of_outbox_event(TENANT, ID, {"event_type": "quota_exceeded", "payload": {"x": {}}}, AT))
    assert (event_fields["event.dataset"], event_fields["event.action"]) == ("gatehouse.event", "quota_exceeded")
    assert event_fields["gatehouse.payload"] == {"x": {}}


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_has_a_category_and_type_that_the_schema_knows(action: str) -> None:
    event_fields = fields(audit(action=action))
    assert set(event_fields["event.category"]) <= CATEGORIES
    assert set(event_fields["event.type"]) <= TYPES


@pytest.mark.parametrize(
    ("action", "category", "kind"),
    [
        ("login.failed", "authentication", "info"), ("user.deleted", "iam", "deletion"),
        ("kill_switch_disable", "configuration", "change"), ("siem.changed", "configuration", "change"),
        ("saml.refused", "authentication", "denied"), ("group.member_added", "iam", "change"),
    ],
)  # fmt: skip
def test_actions_have_a_category_and_a_type(action: str, category: str, kind: str) -> None:
    event_fields = fields(audit(action=action))
    assert (event_fields["event.category"], event_fields["event.type"]) == ([category], [kind])


def test_an_event_is_one_line() -> None:
    assert b"\n" not in audit(details={"text": "two\nlines \u2028"}).body
