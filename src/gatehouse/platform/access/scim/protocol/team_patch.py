"""Parses the PATCH of a group into steps (RFC 7644, 3.5.2), without reading the group's members."""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple
from uuid import UUID

from scim2_models import InvalidPathException, Path
from scim2_models.path import (
    AttrPath,
    CompareOperator,
    Comparison,
    FilterNode,
    LogicalExpr,
    LogicalOperator,
    Present,
    ValuePath,
)

from gatehouse.platform.access.scim.errors import BadScim, InvalidFilter, InvalidPath, InvalidValue
from gatehouse.platform.access.scim.protocol.urns import GROUP

#: maximum number of members that one request can name
_MAX_MEMBERS: Final = 50_000
_MAX_DISPLAY_CHARACTERS: Final = 255
#: Attributes that are ignored in a PATCH without a path, because some directories send whole resources there.
_READ_ONLY_ATTRIBUTES: Final = frozenset({"schemas", "id", "meta"})
#: Text attributes by lower-case name.
_TEXT_ATTRIBUTES: Final = {"displayname": "displayName", "externalid": "externalId"}


class MemberAction(Enum):
    ADD = "add"
    REMOVE = "remove"
    #: The step's members replace all members of the group.
    REPLACE = "replace"


class MembersStep(NamedTuple):
    """A change of members. `users` maps user ids to the directory's display name, or to None."""

    action: MemberAction
    users: dict[UUID, str | None]


class AttributeStep(NamedTuple):
    """A new `displayName` or `externalId`; None removes it."""

    attribute: str
    value: str | None


GroupStep = MembersStep | AttributeStep


def steps_of(operations: Sequence[dict[str, Any]]) -> list[GroupStep]:
    """Return the steps of the operations in order. Consecutive changes of members are merged. Raises `BadScim`."""
    steps: list[GroupStep] = []
    for operation in operations:
        for step in _parse_operation(operation):
            last = steps[-1] if steps else None
            if (
                isinstance(step, MembersStep)
                and isinstance(last, MembersStep)
                and step.action is last.action is not MemberAction.REPLACE
            ):
                last.users.update(step.users)
            else:
                steps.append(step)
    if sum(len(step.users) for step in steps if isinstance(step, MembersStep)) > _MAX_MEMBERS:
        raise InvalidValue(f"A request may name at most {_MAX_MEMBERS} members")
    return steps


def parse_members(value: Any) -> dict[UUID, str | None]:
    """Return the users in a list of members, or in a single member, with their `display`. Raises `InvalidValue`."""
    entries = value if isinstance(value, list) else [] if value is None else [value]
    if len(entries) > _MAX_MEMBERS:
        raise InvalidValue(f"A request may name at most {_MAX_MEMBERS} members")
    return dict(map(_parse_member, entries))


def _parse_operation(operation: dict[str, Any]) -> Iterator[GroupStep]:
    op, path, value = operation.get("op"), operation.get("path"), operation.get("value")
    op = op.lower() if isinstance(op, str) else op
    if op not in {"add", "replace", "remove"}:
        raise InvalidValue("op must be add, replace or remove")
    if path:
        yield from _parse_change(op, path, value, has_value="value" in operation)
    elif op == "remove":
        raise BadScim("noTarget", "remove needs a path")
    elif not isinstance(value, dict):
        raise InvalidValue("without a path, value must be an object")
    else:
        for name, item in value.items():
            if name.lower() not in _READ_ONLY_ATTRIBUTES:
                yield from _parse_change(op, name, item, has_value=True)


def _parse_change(op: str, path: Any, value: Any, *, has_value: bool) -> Iterator[GroupStep]:
    target = _parse_path(path)
    name = target.attr_path.attr.lower() if isinstance(target, ValuePath) else target.attr.lower()
    if op != "remove" and not has_value:
        raise InvalidValue(f"{op} needs a value")
    if name == "members":
        yield _members_step(op, target, value)
    elif isinstance(target, AttrPath) and target.sub_attr is None and name in _TEXT_ATTRIBUTES:
        yield _attribute_step(op, _TEXT_ATTRIBUTES[name], value)
    elif name in _READ_ONLY_ATTRIBUTES:
        raise BadScim("mutability", f"{name} is read-only")
    # Other attributes are ignored, as in a create.


def _parse_path(path: Any) -> AttrPath | ValuePath:
    if not isinstance(path, str) or not path.strip():
        raise InvalidPath("path must be text")
    try:
        target = Path[Any](path).ast
    except InvalidPathException as error:
        raise InvalidPath(error.detail) from None
    if not isinstance(target, AttrPath | ValuePath):
        raise InvalidPath("path must be an attribute, or one with a filter in brackets")
    uri = (target.attr_path if isinstance(target, ValuePath) else target).uri
    if uri is not None and uri.lower() != GROUP.lower():
        raise InvalidPath("path is not an attribute of groups")
    return target


def _members_step(op: str, target: AttrPath | ValuePath, value: Any) -> MembersStep:
    sub_attribute = target.sub_attr
    if sub_attribute is not None:
        raise BadScim("mutability", "a member can be added or removed, but not changed")
    if isinstance(target, ValuePath):
        if op != "remove":
            raise BadScim("noTarget", "members are added by value, not by a filter")
        return MembersStep(MemberAction.REMOVE, dict.fromkeys(_selected_user_ids(target.val_filter)))
    if op == "remove" and value is not None:
        # Entra ID sends the members to remove in `value`. An empty list must not remove all members.
        return MembersStep(MemberAction.REMOVE, parse_members(value))
    if op == "remove":
        return MembersStep(MemberAction.REPLACE, {})
    return MembersStep(MemberAction.ADD if op == "add" else MemberAction.REPLACE, parse_members(value))


def _attribute_step(op: str, attribute: str, value: Any) -> AttributeStep:
    if op == "remove" or value is None:
        if attribute == "displayName":
            raise BadScim("mutability", "displayName is required")
        return AttributeStep(attribute, None)
    if not isinstance(value, str):
        raise InvalidValue(f"{attribute} must be text")
    return AttributeStep(attribute, value)


def _parse_member(entry: Any) -> tuple[UUID, str | None]:
    fields = {name.lower(): value for name, value in entry.items()} if isinstance(entry, dict) else {}
    if str(fields.get("type") or "user").lower() != "user":
        raise InvalidValue("members: only users can be members")
    display = fields.get("display")
    if display is not None and (not isinstance(display, str) or len(display) > _MAX_DISPLAY_CHARACTERS):
        raise InvalidValue(f"members: display may have at most {_MAX_DISPLAY_CHARACTERS} characters")
    return _parse_user_id(fields.get("value")), display


def _parse_user_id(value: Any) -> UUID:
    try:
        return UUID(value)
    except (ValueError, TypeError, AttributeError):
        raise InvalidValue("members: value must be the id of a user") from None


def _selected_user_ids(node: FilterNode) -> Iterator[UUID]:
    """Yield the user ids of `value eq "..."`, or of several of them joined by `or`. Raises `InvalidFilter`."""
    if isinstance(node, LogicalExpr) and node.op is LogicalOperator.or_:
        for term in node.terms:
            yield from _selected_user_ids(term)
    elif _is_value_comparison(node):
        assert isinstance(node, Comparison)
        yield _parse_user_id(node.value)
    else:
        raise InvalidFilter("a filter can only select members by value eq, several of them joined by or")


def _is_value_comparison(node: FilterNode) -> bool:
    return (
        isinstance(node, Comparison)
        and not isinstance(node, Present)
        and node.op is CompareOperator.eq
        and node.attr_path.attr.lower() == "value"
        and node.attr_path.sub_attr is None
    )
