"""The first layer that separates tenants; PostgreSQL's row-level security is the second."""

from sqlalchemy import event
from sqlalchemy.orm import ORMExecuteState, Session, with_loader_criteria

from gatehouse.foundation.storage.rows import TenantRow


class TenantSession(Session):
    """A session that selects only the rows of `info["tenant_id"]`, also if a query omits the condition. Plain SQL has
    only the second layer."""


@event.listens_for(TenantSession, "do_orm_execute")
def _only_own_rows(state: ORMExecuteState) -> None:
    if not (state.is_select or state.is_update or state.is_delete):
        return
    tenant_id = state.session.info["tenant_id"]
    state.statement = state.statement.options(
        with_loader_criteria(TenantRow, lambda row: row.tenant_id == tenant_id, include_aliases=True)
    )
