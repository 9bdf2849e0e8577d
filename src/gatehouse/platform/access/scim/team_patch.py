"""PATCH of a group, read into what is to be done (RFC 7644, 3.5.2). The members themselves are not needed for that."""

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
from gatehouse.platform.access.scim.urns import GROUP

#: members that one request may name
_MOST: Final = 50_000
_MAX_CHARS: Final = 255
#: What a directory may say without effect where it says all it knows.
_READ_ONLY: Final = frozenset({"schemas", "id", "meta"})
#: By lower case; values are the names of the schema.
_TEXTS: Final = {"displayname": "displayName", "externalid": "externalId"}


class What(Enum):
    ADD = "add"
    REMOVE = "remove"
    #: all others are removed
    BECOME = "become"


class Members(NamedTuple):
    """`users` with what the directory calls each, or None."""

    what: What
    users: dict[UUID, str | None]


class Named(NamedTuple):
    """A `displayName` or `externalId`; None takes it away."""

    attribute: str
    value: str | None


Step = Members | Named


def steps_of(operations: Sequence[dict[str, Any]]) -> list[Step]:
    """In order; what is done to members again and again is one step. Raises `BadScim`."""
    found: list[Step] = []
    for operation in operations:
        for step in _steps(operation):
            last = found[-1] if found else None
            if isinstance(step, Members) and isinstance(last, Members) and step.what is last.what is not What.BECOME:
                last.users.update(step.users)
            else:
                found.append(step)
    if sum(len(step.users) for step in found if isinstance(step, Members)) > _MOST:
        raise InvalidValue(f"A request may name {_MOST} members")
    return found


def named_members(value: Any) -> dict[UUID, str | None]:
    """The users that a list of members names, or a single one, with their `display`. Raises `InvalidValue`."""
    entries = value if isinstance(value, list) else [] if value is None else [value]
    if len(entries) > _MOST:
        raise InvalidValue(f"A request may name {_MOST} members")
    return dict(map(_member, entries))


def _steps(operation: dict[str, Any]) -> Iterator[Step]:
    verb, path, value = operation.get("op"), operation.get("path"), operation.get("value")
    verb = verb.lower() if isinstance(verb, str) else verb
    if verb not in {"add", "replace", "remove"}:
        raise InvalidValue("op must be add, replace or remove")
    if path:
        yield from _at(verb, path, value, given="value" in operation)
    elif verb == "remove":
        raise BadScim("noTarget", "remove needs a path")
    elif not isinstance(value, dict):
        raise InvalidValue("without a path, value must be an object")
    else:
        for name, each in value.items():
            if name.lower() not in _READ_ONLY:
                yield from _at(verb, name, each, given=True)


def _at(verb: str, path: Any, value: Any, *, given: bool) -> Iterator[Step]:
    target = _target(path)
    name = target.attr_path.attr.lower() if isinstance(target, ValuePath) else target.attr.lower()
    if verb != "remove" and not given:
        raise InvalidValue(f"{verb} needs a value")
    if name == "members":
        yield _members(verb, target, value)
    elif isinstance(target, AttrPath) and target.sub_attr is None and name in _TEXTS:
        yield _named(verb, _TEXTS[name], value)
    elif name in _READ_ONLY:
        raise BadScim("mutability", f"{name} is the service's to say")
    # What a group has not is ignored, as it is where a group is made.


def _target(path: Any) -> AttrPath | ValuePath:
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


def _members(verb: str, target: AttrPath | ValuePath, value: Any) -> Members:
    below = target.sub_attr
    if below is not None:
        raise BadScim("mutability", "a member is added or removed, not changed")
    if isinstance(target, ValuePath):
        if verb != "remove":
            raise BadScim("noTarget", "members are added by value, not by a filter")
        return Members(What.REMOVE, dict.fromkeys(_selected(target.val_filter)))
    if verb == "remove" and value is not None:
        # Entra ID names in `value` whom to remove. An empty list names nobody: it must not be taken for all.
        return Members(What.REMOVE, named_members(value))
    if verb == "remove":
        return Members(What.BECOME, {})
    return Members(What.ADD if verb == "add" else What.BECOME, named_members(value))


def _named(verb: str, attribute: str, value: Any) -> Named:
    if verb == "remove" or value is None:
        if attribute == "displayName":
            raise BadScim("mutability", "displayName is required")
        return Named(attribute, None)
    if not isinstance(value, str):
        raise InvalidValue(f"{attribute} must be text")
    return Named(attribute, value)


def _member(entry: Any) -> tuple[UUID, str | None]:
    fields = {name.lower(): value for name, value in entry.items()} if isinstance(entry, dict) else {}
    if str(fields.get("type") or "user").lower() != "user":
        raise InvalidValue("members: only users can be members")
    display = fields.get("display")
    if display is not None and (not isinstance(display, str) or len(display) > _MAX_CHARS):
        raise InvalidValue(f"members: display may have {_MAX_CHARS} characters")
    return _user_id(fields.get("value")), display


def _user_id(value: Any) -> UUID:
    try:
        return UUID(value)
    except (ValueError, TypeError, AttributeError):
        raise InvalidValue("members: value must be the id of a user") from None


def _selected(node: FilterNode) -> Iterator[UUID]:
    """`value eq "..."`, and several of them joined by `or`."""
    if isinstance(node, LogicalExpr) and node.op is LogicalOperator.or_:
        for term in node.terms:
            yield from _selected(term)
    elif _compares_value(node):
        assert isinstance(node, Comparison)
        yield _user_id(node.value)
    else:
        raise InvalidFilter("members are selected by value eq, several joined by or")


def _compares_value(node: FilterNode) -> bool:
    return (
        isinstance(node, Comparison)
        and not isinstance(node, Present)
        and node.op is CompareOperator.eq
        and node.attr_path.attr.lower() == "value"
        and node.attr_path.sub_attr is None
    )
