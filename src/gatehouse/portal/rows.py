"""What the portal's tables have in common. `org_id` is to them what `tenant_id` is to the platform's: its owner."""

from sqlalchemy import MetaData, event
from sqlalchemy.orm import Mapped, ORMExecuteState, Session, mapped_column, with_loader_criteria

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.rows import Row


class PortalRow(Row):
    """Of tables of its own: the platform may have some of the same names."""

    __abstract__ = True
    metadata = MetaData()


class OrgRow(PortalRow):
    """A row that belongs to an organization: PostgreSQL's row-level security asks for it too."""

    __abstract__ = True

    org_id: Mapped[TenantId] = mapped_column(index=False)


class OrgSession(Session):
    """Asks for the rows of one organization alone, whatever a query forgot. Queries in plain SQL have the second wall
    only."""


@event.listens_for(OrgSession, "do_orm_execute")
def _its_own_alone(state: ORMExecuteState) -> None:
    if not (state.is_select or state.is_update or state.is_delete):
        return
    org_id = state.session.info["tenant_id"]
    state.statement = state.statement.options(
        with_loader_criteria(OrgRow, lambda row: row.org_id == org_id, include_aliases=True)
    )
