"""Aliases and loads for the tests of deployments."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid5

import msgspec
from tests.support.engine import TENANT, EngineHarness

from gatehouse.engine.routing.deployments.load import AliasUse, DeploymentLoads
from gatehouse.engine.routing.deployments.order import OrderView
from gatehouse.policy.aliases import Alias, Deployment, compile_aliases
from gatehouse.policy.catalog import DeploymentRecord, ModelAliasRecord, ModelRecord, ProviderRecord

ALIAS = UUID("00000000-0000-7000-8000-0000000000cc")


def alias_record(name: str = "fast", *deployments: Mapping[str, Any], **fields: Any) -> ModelAliasRecord:
    """Return an alias. Each deployment is the catalog entry `m` of its provider, unless it names another one."""
    entries = tuple(msgspec.convert({"model_id": "m", **deployment}, DeploymentRecord) for deployment in deployments)
    return ModelAliasRecord(id=uuid5(ALIAS, name), name=name, deployments=entries, **fields)


def compiled(record: ModelAliasRecord) -> Alias:
    """Return the alias, with a catalog that has all of its deployments."""
    names = {entry.provider: entry for entry in record.deployments}
    providers = {name: ProviderRecord(id=name, name=name, kind="byoe") for name in names}
    models = {
        f"{name}/{entry.model_id}": ModelRecord(id=uuid5(TENANT, name), provider=name, model_id=entry.model_id)
        for name, entry in names.items()
    }
    return compile_aliases([record], providers, models)[record.name]


class Ordering:
    """The order of one alias's deployments in one worker. `resting` and `full` are names of providers, `medians`
    milliseconds by provider."""

    def __init__(self, record: ModelAliasRecord, start: float = 0.5) -> None:
        self.alias = compiled(record)
        self.loads = DeploymentLoads(EngineHarness().ports, lambda: start)
        self.resting: set[str] = set()
        self.full: set[str] = set()
        self.medians: dict[str, float] = {}
        self.may_try = True

    def view(self, *, conversation: bytes | None = None, trial: bool = False, use: AliasUse = "named") -> OrderView:
        ids = {deployment.candidate.provider.id: deployment.candidate.model.id.int for deployment in self.alias.live}

        def tries(deployment: Deployment) -> bool:
            return self.may_try

        return OrderView(
            load=self.loads.of,
            rests=lambda deployment: deployment.candidate.provider.id in self.resting,
            is_full=lambda deployment: deployment.candidate.provider.id in self.full,
            medians={ids[provider]: median for provider, median in self.medians.items()},
            may_try=tries,
            use=use,
            conversation=conversation,
            trial=trial,
        )
