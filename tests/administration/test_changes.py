"""The fields of audit events that the changes of platform and portal have in common."""

from uuid import UUID

import pytest
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request

from gatehouse.administration.changes import AuditedChange, RequestOrigin
from gatehouse.foundation.identity import Caller, CallerKind
from gatehouse.platform.changes.change import Change
from gatehouse.portal.change import PortalChange
from gatehouse.portal.identity import PortalCaller, PortalCallerKind

USER_ID = UUID(int=1)
ORIGIN = RequestOrigin("req_1", "192.0.2.1")
USER = Caller(kind=CallerKind.USER, tenant_id=None, user_id=USER_ID)
MEMBER = PortalCaller(kind=PortalCallerKind.MEMBER, id="member-1")


@pytest.mark.parametrize(
    ("change", "actor_type", "actor_id"),
    [
        (Change(AsyncSession(), USER, ORIGIN), "user", str(USER_ID)),
        (PortalChange(AsyncSession(), None, MEMBER, ORIGIN), "member", "member-1"),
    ],
    ids=["platform", "portal"],
)
def test_an_event_names_its_actor_its_resource_and_its_request(
    change: AuditedChange[Caller] | AuditedChange[PortalCaller], actor_type: str, actor_id: str
) -> None:
    assert change.audit_fields("thing.update", "thing", UUID(int=2)) == {
        "action": "thing.update",
        "actor_id": actor_id,
        "actor_type": actor_type,
        "resource_type": "thing",
        "resource_id": str(UUID(int=2)),
        "request_id": "req_1",
        "ip": "192.0.2.1",
    }


def test_a_change_by_the_system_has_no_actor_and_no_request() -> None:
    fields = Change(AsyncSession(), None).audit_fields("thing.update", None, None)
    assert fields.pop("action") == "thing.update"
    assert fields.pop("actor_type") == "system"
    assert set(fields.values()) == {None}


def test_the_origin_is_the_id_of_the_request_and_the_address_that_the_shell_determined() -> None:
    state = {"request_id": "req_1", "client_address": "192.0.2.1"}
    request = Request({"type": "http", "client": ("203.0.113.1", 1), "headers": [], "state": state})
    assert RequestOrigin.of(request) == ORIGIN
