"""The endpoints of the system's health for administrators (docs/operations.md)."""

from typing import Any

from fastapi import APIRouter

from gatehouse import __version__
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import NotFound
from gatehouse.platform.operations.health import components, diagnosis, summary, table
from gatehouse.platform.operations.health.schemas import Diagnosis, MetricsSummary, SystemHealth, Version
from gatehouse.platform.organization.feature_flags.table import flags
from gatehouse.platform.request.callers import RESPONSES, AdminReader
from gatehouse.platform.request.injected import Session
from gatehouse.platform.request.ports import TheHost

router = APIRouter(prefix="/api/admin/system", tags=["System"], responses=RESPONSES)


class ComponentNotFound(NotFound):
    message = "There is no component with this name."


# Fields that a component does not have are absent, not null.
@router.get("/health", response_model=SystemHealth, response_model_exclude_unset=True)
async def system_health(caller: AdminReader, host: TheHost) -> object:
    """Returns the health of the system and of every component, even without the database."""
    by_name = await components.all_of(host, caller)
    return {
        "status": components.overall(by_name),
        "timestamp": utc_now(),
        "version": __version__,
        "components": by_name,
    }


@router.get(
    "/health/components/{component}",
    response_model=dict[str, Any],
    responses={404: {"description": "There is no such component."}},
)
async def component_health(caller: AdminReader, host: TheHost, component: str) -> object:
    """Returns the health of one component."""
    by_name = await components.all_of(host, caller)
    if component not in by_name:
        raise ComponentNotFound
    return by_name[component]


@router.get("/diagnosis", response_model=Diagnosis)
async def system_diagnosis(caller: AdminReader, host: TheHost) -> Diagnosis:
    """Returns the results of the checks of `gatehouse doctor` that a running worker can make: settings, master key,
    database, workers, clock, Redis, journal, limits and certificate. It takes at most a few seconds, even without the
    database."""
    return await diagnosis.of(host, caller)


@router.get("/version", response_model=Version)
async def version(caller: AdminReader, host: TheHost, session: Session) -> object:
    """Returns the installed version, and your organization's feature flags."""
    return {
        "platform_version": __version__,
        "build_date": host.settings.gatehouse_build_date,
        "git_commit": host.settings.gatehouse_git_commit,
        "environment": host.settings.environment,
        "schema_version": await table.schema_version(session),
        "feature_flags": await flags(session),
    }


@router.get("/metrics-summary", response_model=MetricsSummary)
async def metrics_summary(caller: AdminReader, host: TheHost) -> object:
    """Returns metrics of the last hour for your organization. Operators get the metrics of the whole platform. At most
    the newest 50,000 requests are evaluated."""
    return await summary.of(host, caller)
