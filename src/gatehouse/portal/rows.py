"""Bases of the portal's tables. `org_id` is the owner, as `tenant_id` is on the platform."""

from sqlalchemy import MetaData, event
from sqlalchemy.orm import Mapped, ORMExecuteState, Session, mapped_column, with_loader_criteria

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.rows import Row


class PortalRow(Row):
    """Has its own metadata: the platform may have tables of the same names."""

    __abstract__ = True
    metadata = MetaData()


class OrgRow(PortalRow):
    """A row that belongs to an organization, which PostgreSQL's row-level security enforces too."""

    __abstract__ = True

    org_id: Mapped[TenantId] = mapped_column(index=False)


class OrgSession(Session):
    """Filters every ORM query by one organization. Queries in plain SQL are only filtered by row-level security."""


@event.listens_for(OrgSession, "do_orm_execute")
def _filter_by_organization(state: ORMExecuteState) -> None:
    if not (state.is_select or state.is_update or state.is_delete):
        return
    org_id = state.session.info["tenant_id"]
    state.statement = state.statement.options(
        with_loader_criteria(OrgRow, lambda row: row.org_id == org_id, include_aliases=True)
    )
