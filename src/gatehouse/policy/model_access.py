"""Who may use which model, compiled: the rules of groups, looked up by the group (reference 2, Group)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias
from uuid import UUID

import msgspec

AccessType: TypeAlias = Literal["ALLOW", "DENY"]


class ModelAccessRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of a group. `model` is `provider/model-id`."""

    group_id: UUID
    model: str
    access_type: AccessType


class GroupAccess(msgspec.Struct, frozen=True, gc=False):
    """The models that a group's rules name, as `provider/model-id`."""

    allowed: frozenset[str]
    denied: frozenset[str]


class ModelAccess(msgspec.Struct, frozen=True, kw_only=True):
    #: groups without rules are not in it
    groups: Mapping[UUID, GroupAccess] = {}

    def permits(self, groups: Iterable[UUID], provider: str, model_id: str, *, restricted: bool) -> bool:
        """Whether a member of these groups may use a model. A DENY in any of them wins; a restricted model needs an
        ALLOW in one, so whoever is in no group (a machine) has none."""
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
    """Rules for models that the catalog does not have stay: a model that comes back is denied as before."""
    named: dict[UUID, dict[AccessType, set[str]]] = defaultdict(lambda: {"ALLOW": set(), "DENY": set()})
    for record in records:
        named[record.group_id][record.access_type].add(record.model)
    return ModelAccess(
        groups={
            group: GroupAccess(allowed=frozenset(rules["ALLOW"]), denied=frozenset(rules["DENY"]))
            for group, rules in named.items()
        }
    )
