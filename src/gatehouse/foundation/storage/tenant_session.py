"""The first wall between tenants; PostgreSQL's row-level security is the second (decisions 2)."""

from sqlalchemy import event
from sqlalchemy.orm import ORMExecuteState, Session, with_loader_criteria

from gatehouse.foundation.storage.rows import TenantRow


class TenantSession(Session):
    """Asks for the rows of `info["tenant_id"]` alone, whatever a query forgot. Queries in plain SQL have the second
    wall only."""


@event.listens_for(TenantSession, "do_orm_execute")
def _its_own_alone(state: ORMExecuteState) -> None:
    if not (state.is_select or state.is_update or state.is_delete):
        return
    tenant_id = state.session.info["tenant_id"]
    state.statement = state.statement.options(
        with_loader_criteria(TenantRow, lambda row: row.tenant_id == tenant_id, include_aliases=True)
    )
