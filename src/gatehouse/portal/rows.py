"""The base classes of the portal's rows. `org_id` is the owner of a row, as `tenant_id` is on the platform."""

from sqlalchemy import MetaData, event
from sqlalchemy.orm import Mapped, ORMExecuteState, Session, mapped_column, with_loader_criteria

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.rows import Row


class PortalRow(Row):
    """A row of the portal. It has metadata of its own, because the platform may have tables of the same names."""

    __abstract__ = True
    metadata = MetaData()


class OrgRow(PortalRow):
    """A row that belongs to an organization. PostgreSQL's row-level security also enforces this."""

    __abstract__ = True

    org_id: Mapped[TenantId] = mapped_column(index=False)


class OrgSession(Session):
    """A session that filters every ORM query by one organization. Only row-level security filters queries in plain
    SQL."""


@event.listens_for(OrgSession, "do_orm_execute")
def _filter_by_organization(state: ORMExecuteState) -> None:
    if not (state.is_select or state.is_update or state.is_delete):
        return
    org_id = state.session.info["tenant_id"]
    state.statement = state.statement.options(
        with_loader_criteria(OrgRow, lambda row: row.org_id == org_id, include_aliases=True)
    )
