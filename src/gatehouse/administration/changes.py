"""`AuditedChange` is the base class of changes made through the platform and the portal. It holds the actor and the
request, and builds the audit event fields from them. `load_row` loads the row that a request identifies, for example by
an id in the path."""

from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute
from starlette.requests import Request

from gatehouse.foundation.errors import NotFound
from gatehouse.foundation.storage.rows import Row


class RequestOrigin(msgspec.Struct, frozen=True):
    """The id of a request and the address of its client, for audit events. Changes by the system have neither."""

    request_id: str | None = None
    ip: str | None = None

    @classmethod
    def of(cls, request: Request) -> "RequestOrigin":
        state = request.scope["state"]
        return cls(state["request_id"], state["client_address"])


class Actor(Protocol):
    """A caller: its type and id, as recorded in audit events."""

    @property
    def kind(self) -> Enum: ...

    @property
    def actor_id(self) -> str: ...


R = TypeVar("R", bound=Row)
A = TypeVar("A", bound=Actor)


class AuditedChange(Generic[A]):
    """Base class of a change with its audit events. `caller` is the actor, or None for the system."""

    def __init__(self, session: AsyncSession, caller: A | None, origin: RequestOrigin | None) -> None:
        self.session = session
        self.caller = caller
        self.origin = origin or RequestOrigin()

    def audit_fields(self, action: str, resource_type: str | None, resource_id: object) -> dict[str, Any]:
        """Return the fields of an audit event without its details: action, actor, resource and origin."""
        return {
            "action": action,
            "actor_id": self.caller.actor_id if self.caller else None,
            "actor_type": self.caller.kind.value if self.caller else "system",
            "resource_type": resource_type,
            "resource_id": None if resource_id is None else str(resource_id),
            "request_id": self.origin.request_id,
            "ip": self.origin.ip,
        }


async def load_row(
    session: AsyncSession,
    row_class: type[R],
    column: "InstrumentedAttribute[Any]",
    value: object,
    not_found_error: type[NotFound],
    *,
    lock: bool,
) -> R:
    """Return the row in which `column` has the value. Raises `not_found_error` if the session's organization has no
    such row, or if the value is None.

    If `lock` is true, the row is locked, so that concurrent changes are serialized. Pass true if the request can change
    the row."""
    if value is None:
        raise not_found_error
    query = select(row_class).where(column == value)
    if lock:
        query = query.with_for_update()
    record = (await session.scalars(query)).one_or_none()
    if record is None:
        raise not_found_error
    return record
