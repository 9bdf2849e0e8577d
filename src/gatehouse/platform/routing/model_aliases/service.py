"""Lists, creates, changes and deletes model aliases."""

from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable
from gatehouse.foundation.http.lists import OffsetWindow, count_query
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.conflicts import unique
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.changes.change import Change
from gatehouse.platform.routing.model_aliases.schemas import DeploymentFields, ModelAliasUpdate, NewModelAlias
from gatehouse.platform.routing.model_aliases.table import (
    ModelAliasRow,
    count_model_aliases,
    existing_credentials,
    existing_models,
    list_query,
)

#: Maximum number of model aliases of an organization.
MAX_MODEL_ALIASES: Final = 200
#: Fields that apply only to live deployments.
_LIVE_FIELDS: Final = ("weight", "tier", "max_concurrent_requests", "requests_per_minute", "tokens_per_minute")


class ModelAliasNotFound(NotFound):
    message = "Model alias not found"


class ModelAliasExists(Conflict):
    code = "model_alias_exists"
    message = "The organization already has a model alias with this name. Choose another name."


class TooManyModelAliases(Conflict):
    code = "too_many_model_aliases"
    message = "The organization has the maximum number of model aliases. Delete some first."


class InvalidModelAliasField(Unprocessable):
    def __init__(self, field: str, fault: str) -> None:
        super().__init__(faults=[FieldFault(field, fault)])


async def list_page(
    session: AsyncSession, window: OffsetWindow, *, search: str | None, enabled: bool | None, sort: str
) -> dict[str, Any]:
    query = list_query(search=search, enabled=enabled, sort=sort)
    total = (await session.execute(count_query(query))).scalar_one()
    rows = (await session.scalars(window.apply(query))).all()
    return window.envelope("model_aliases", rows, total)


async def create(change: Change, new: NewModelAlias) -> ModelAliasRow:
    """Add a model alias. Raises `InvalidModelAliasField`, `ModelAliasExists`, `TooManyModelAliases`."""
    session = change.session
    await require_room(
        session, ScopedLock.MODEL_ALIASES, count_model_aliases, limit=MAX_MODEL_ALIASES, full=TooManyModelAliases
    )
    values = new.model_dump()
    _check_balance(values["balance"], sticky=values["sticky"])
    await _check_deployments(session, new.deployments)
    now = utc_now()
    row = ModelAliasRow(id=new_id(), tenant_id=change.tenant_id, created_at=now, updated_at=now, **values)
    session.add(row)
    with unique(ModelAliasExists):
        await session.flush()
    _record(change, "model_alias.created", row, **{name: value for name, value in values.items() if name != "name"})
    return row


async def update(change: Change, row: ModelAliasRow, body: ModelAliasUpdate) -> ModelAliasRow:
    """Change the fields that differ. If none differs, there is no audit event and no new version. Raises
    `InvalidModelAliasField`."""
    sent = body.model_dump(include=body.model_fields_set)
    _check_balance(sent.get("balance", row.balance), sticky=sent.get("sticky", row.sticky))
    if "deployments" in sent:
        await _check_deployments(change.session, body.deployments)
    changes = row.differing(sent)
    if changes:
        row.assign(changes)
        _record(change, "model_alias.updated", row, **changes)
    return row


async def delete(change: Change, row: ModelAliasRow) -> None:
    await change.session.delete(row)
    _record(change, "model_alias.deleted", row)


def _check_balance(balance: str, *, sticky: bool) -> None:
    if sticky and balance != "weighted":
        raise InvalidModelAliasField("sticky", f"must be false with the balance {balance}: use weighted")


async def _check_deployments(session: AsyncSession, deployments: Sequence[DeploymentFields]) -> None:
    names = [f"{deployment.provider}/{deployment.model_id}" for deployment in deployments]
    models = await existing_models(session, names)
    credentials = await existing_credentials(
        session, [deployment.provider for deployment in deployments if deployment.credential is not None]
    )
    #: labels of the credentials of earlier deployments, by the model's name
    labels: dict[str, set[str | None]] = {}
    for index, (deployment, name) in enumerate(zip(deployments, names, strict=True)):
        field = f"deployments.{index}"
        if name not in models:
            raise InvalidModelAliasField(
                f"{field}.model_id", "must be a model of this provider in the catalog: add it first"
            )
        _check_credential(field, deployment, credentials, labels.setdefault(name, set()))
        _check_role(field, deployment)
    if all(deployment.role == "shadow" for deployment in deployments):
        raise InvalidModelAliasField("deployments", "must contain a deployment with the role live")


def _check_credential(
    field: str, deployment: DeploymentFields, existing: Set[tuple[str, str]], earlier: set[str | None]
) -> None:
    """Refuse a credential that the provider does not have, and a second deployment of the same model with the same
    credentials. `earlier` are the credentials of the earlier deployments of the model. The credential of this
    deployment is added to it."""
    label = deployment.credential
    if label is not None and (deployment.provider, label) not in existing:
        raise InvalidModelAliasField(f"{field}.credential", "must be the label of a credential of this provider")
    if label in earlier:
        at = "model_id" if label is None else "credential"
        raise InvalidModelAliasField(f"{field}.{at}", "is already a deployment of this alias")
    if earlier and None in {label, *earlier}:
        raise InvalidModelAliasField(
            f"{field}.credential", "must be set in all deployments of a model, or in none of them"
        )
    earlier.add(label)


def _check_role(field: str, deployment: DeploymentFields) -> None:
    """Refuse fields that do not apply to the deployment's role, because they would have no effect."""
    foreign: Sequence[str] = _LIVE_FIELDS if deployment.role == "shadow" else ("share",)
    defaults: Mapping[str, Any] = {
        name: info.default for name, info in DeploymentFields.model_fields.items() if name in foreign
    }
    for name, default in defaults.items():
        if getattr(deployment, name) != default:
            raise InvalidModelAliasField(f"{field}.{name}", f"does not apply to the role {deployment.role}")


def _record(change: Change, action: str, row: ModelAliasRow, **details: Any) -> None:
    """Record the change, and make workers compile the organization's policy again."""
    change.record(action, "model_alias", row.id, name=row.name, **details)
    change.touch("policy", change.tenant_id, urgent=True)
