"""Compiles the rules for the access of groups to models (docs/model-access.md)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias
from uuid import UUID

import msgspec

AccessType: TypeAlias = Literal["ALLOW", "DENY"]


class ModelAccessRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One rule for the access of a group to a model. `model` is `provider/model-id`."""

    group_id: UUID
    model: str
    access_type: AccessType


class GroupAccess(msgspec.Struct, frozen=True, gc=False):
    """The models in the rules of one group, as `provider/model-id`."""

    allowed: frozenset[str]
    denied: frozenset[str]


class ModelAccess(msgspec.Struct, frozen=True, kw_only=True):
    #: the access of each group that has rules
    groups: Mapping[UUID, GroupAccess] = {}

    def permits(self, groups: Iterable[UUID], provider: str, model_id: str, *, restricted: bool) -> bool:
        """Return whether a member of these groups may use a model. A DENY in any group wins. A restricted model needs
        an ALLOW in one group, so a caller without groups (a machine) has no access."""
        if not self.groups:
            return not restricted
        name, granted = f"{provider}/{model_id}", not restricted
        for group in groups:
            rules = self.groups.get(group)
            if rules is None:
                continue
            if name in rules.denied:
                return False
            granted = granted or name in rules.allowed
        return granted


def compile_access(records: Iterable[ModelAccessRecord]) -> ModelAccess:
    """Compile the rules. Rules for models that are not in the catalog are kept, so that a denied model is still denied
    if it is added to the catalog again."""
    models: dict[UUID, dict[AccessType, set[str]]] = defaultdict(lambda: {"ALLOW": set(), "DENY": set()})
    for record in records:
        models[record.group_id][record.access_type].add(record.model)
    return ModelAccess(
        groups={
            group: GroupAccess(allowed=frozenset(rules["ALLOW"]), denied=frozenset(rules["DENY"]))
            for group, rules in models.items()
        }
    )
