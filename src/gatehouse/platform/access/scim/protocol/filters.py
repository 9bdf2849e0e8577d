"""Compiles the `filter` of a list to SQL (RFC 7644, 3.4.2.2; docs/scim.md).

A comparison with a missing value is NULL in SQL. A WHERE clause treats NULL as false, so only `not` needs an explicit
conversion.
"""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from scim2_models import InvalidFilterException, ScimFilter
from scim2_models.path import (
    AttrPath,
    CompareOperator,
    Comparison,
    FilterNode,
    LogicalExpr,
    LogicalOperator,
    Not,
    Present,
    ValuePath,
)
from sqlalchemy import (
    ARRAY,
    Boolean,
    ColumnElement,
    SQLColumnExpression,
    Uuid,
    and_,
    any_,
    cast,
    column,
    false,
    func,
    literal,
    not_,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB

from gatehouse.platform.access.groups.table import GroupRow, MemberRow
from gatehouse.platform.access.scim.errors import InvalidFilter
from gatehouse.platform.access.scim.protocol.urns import ENTERPRISE, GROUP, USER
from gatehouse.platform.access.users.table import UserRow

Op = CompareOperator
Condition = ColumnElement[bool]

_MAX_FILTER_CHARACTERS: Final = 4_096
_COMPARISONS: Final[Mapping[CompareOperator, Callable[[Any, Any], Any]]] = {
    Op.eq: operator.eq, Op.gt: operator.gt, Op.ge: operator.ge, Op.lt: operator.lt, Op.le: operator.le,
}  # fmt: skip


class TextAttribute(NamedTuple):
    """A text attribute, compared case-insensitively unless it is `exact`. `index_function` is the database function for
    `_is_in_index`."""

    column: SQLColumnExpression[Any]
    exact: bool = False
    index_function: str | None = None

    def compare(self, op: CompareOperator, value: Any) -> Condition:
        if value is None:
            return _compare_null(self.column, op)
        if not isinstance(value, str):
            raise InvalidFilter("the attribute can only be compared with text in double quotes")
        operand = self.column if self.exact else func.lower(self.column)
        expected = literal(value) if self.exact else func.lower(value)
        match op:
            case Op.eq if self.index_function:
                return _is_in_index(self.index_function, value)
            case Op.ne:
                return operand.is_distinct_from(expected)
            case Op.co | Op.sw | Op.ew:
                return self._text_condition(operand, op, value)
            case _:
                condition: Condition = _COMPARISONS[op](operand, expected)
                return condition

    def _text_condition(self, operand: SQLColumnExpression[Any], op: CompareOperator, value: str) -> Condition:
        text = value if self.exact else value.lower()
        if op is Op.co:
            return operand.contains(text, autoescape=True)
        return operand.startswith(text, autoescape=True) if op is Op.sw else operand.endswith(text, autoescape=True)


class FlagAttribute(NamedTuple):
    """A boolean attribute. Directories send the strings "True" and "False" too."""

    column: SQLColumnExpression[Any]

    def compare(self, op: CompareOperator, value: Any) -> Condition:
        if value is None:
            return _compare_null(self.column, op)
        expected = {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else value
        if not isinstance(expected, bool) or op not in {Op.eq, Op.ne}:
            raise InvalidFilter("the attribute can only be compared by eq or ne, with true or false")
        return self.column.is_(expected is (op is Op.eq))


class IdAttribute(NamedTuple):
    """An id, compared by `eq` only."""

    column: SQLColumnExpression[Any]

    def compare(self, op: CompareOperator, value: Any) -> Condition:
        if op is not Op.eq or not isinstance(value, str):
            raise InvalidFilter("id can only be compared by eq, with text in double quotes")
        try:
            return self.column == UUID(value)
        except ValueError:
            return false()


Attribute = TextAttribute | FlagAttribute | IdAttribute


class MultiValuedAttribute(ABC):
    """A multi-valued attribute."""

    @abstractmethod
    def any_matching(self, condition: FilterNode) -> Condition:
        """Return the SQL condition that is true if any entry matches `condition`."""


class EmailsAttribute(MultiValuedAttribute):
    def any_matching(self, condition: FilterNode) -> Condition:
        item = func.jsonb_array_elements(_EMAILS_JSON).table_valued(column("value", JSONB), name="entry")
        entry = item.c.value
        attributes: Attributes = {
            "value": TextAttribute(entry["value"].astext),
            "type": TextAttribute(entry["type"].astext),
            "display": TextAttribute(entry["display"].astext),
            "primary": FlagAttribute(func.coalesce(entry["primary"].astext.cast(Boolean), false())),
        }
        condition_sql = _FilterCompiler(attributes).compile_filter(condition)
        matches = select(literal(1)).select_from(item).where(condition_sql).exists()
        address = _address(condition)
        # This condition follows from the other one, but lets the database use an index.
        return matches if address is None else and_(_is_in_index("gatehouse_users_by_address", address), matches)


class MembersAttribute(MultiValuedAttribute):
    def any_matching(self, condition: FilterNode) -> Condition:
        condition_sql = _FilterCompiler({"value": IdAttribute(MemberRow.user_id)}).compile_filter(condition)
        return select(literal(1)).where(MemberRow.group_id == GroupRow.id, condition_sql).exists()


#: The addresses, as `people.to_resource` returns them. A user that no directory has written has only the sign-in
#: address.
_EMAILS_JSON: Final = func.coalesce(
    UserRow.directory["emails"],
    func.jsonb_build_array(func.jsonb_build_object("value", UserRow.email, "type", "work", "primary", True)),
)

#: Attributes by lower-case name. The manager has several names, because Entra ID filters by any of them.
Attributes = Mapping[str, Attribute | MultiValuedAttribute]
_manager: Final = TextAttribute(UserRow.directory[ENTERPRISE]["manager"]["value"].astext)
USERS: Final[Attributes] = {
    "id": IdAttribute(UserRow.id),
    "externalid": TextAttribute(UserRow.external_id, exact=True),
    "username": TextAttribute(
        func.coalesce(UserRow.user_name, UserRow.email), index_function="gatehouse_users_by_name"
    ),
    "active": FlagAttribute(UserRow.is_active),
    "emails": EmailsAttribute(),
    "manager": _manager,
    f"{ENTERPRISE}:manager".lower(): _manager,
    f"{ENTERPRISE}:manager.value".lower(): _manager,
}
GROUPS: Final[Attributes] = {
    "id": IdAttribute(GroupRow.id),
    "externalid": TextAttribute(GroupRow.external_group_id, exact=True),
    "displayname": TextAttribute(GroupRow.name),
    "members": MembersAttribute(),
}
_CORE_URNS: Final = {"", USER.lower(), GROUP.lower()}


def compile_filter(text: str, attributes: Attributes) -> Condition:
    """Return the SQL condition of a filter. Raises `InvalidFilter`."""
    if len(text) > _MAX_FILTER_CHARACTERS:
        raise InvalidFilter(f"a filter may have at most {_MAX_FILTER_CHARACTERS} characters")
    try:
        tree = ScimFilter[Any](text).ast
    except InvalidFilterException as error:
        raise InvalidFilter(error.detail) from None
    return _FilterCompiler(attributes).compile_filter(tree)


class _FilterCompiler:
    """Compiles the nodes of a parsed filter to SQL conditions."""

    def __init__(self, attributes: Attributes) -> None:
        self._attributes = attributes

    def compile_filter(self, node: FilterNode) -> Condition:
        match node:
            case LogicalExpr(op=op, terms=terms):
                join = and_ if op is LogicalOperator.and_ else or_
                return join(*map(self.compile_filter, terms))
            case Not(expr=inner):
                return not_(func.coalesce(self.compile_filter(inner), false()))
            case Comparison(attr_path=path, op=op, value=value):
                return self._comparison(path, op, value)
            case Present(attr_path=path):
                return self._present(path)
            case ValuePath(attr_path=path, val_filter=condition):
                attribute = self._attribute(path)
                if isinstance(attribute, MultiValuedAttribute):
                    return attribute.any_matching(condition)
        raise InvalidFilter(f"not supported: {node}")

    def _comparison(self, path: AttrPath, op: CompareOperator, value: Any) -> Condition:
        if isinstance(value, str) and "\0" in value:
            raise InvalidFilter("a value may not contain NUL characters")
        attribute = self._attribute(path)
        if not isinstance(attribute, MultiValuedAttribute):
            return attribute.compare(op, value)
        entry_path = AttrPath(path.sub_attr or "value")
        if op is Op.ne:
            # `ne` means that no entry is equal. If it meant that some entry differs, it would match nearly every user.
            return not_(attribute.any_matching(Comparison(entry_path, Op.eq, value)))
        return attribute.any_matching(Comparison(entry_path, op, value))

    def _present(self, path: AttrPath) -> Condition:
        attribute = self._attribute(path)
        if isinstance(attribute, MultiValuedAttribute):
            return attribute.any_matching(Present(AttrPath(path.sub_attr or "value")))
        return attribute.column.is_not(None)

    def _attribute(self, path: AttrPath) -> Attribute | MultiValuedAttribute:
        uri = (path.uri or "").lower()
        name = path.attr.lower() if uri in _CORE_URNS else f"{uri}:{path.attr.lower()}"
        attribute = self._attributes.get(name)
        if path.sub_attr and not isinstance(attribute, MultiValuedAttribute):
            attribute = self._attributes.get(f"{name}.{path.sub_attr.lower()}")
        if attribute is None:
            raise InvalidFilter(f"{path} is not an attribute that a filter can use")
        return attribute


def _is_in_index(index_function: str, value: str) -> Condition:
    """Return the condition that the user's id is among those that the database function `index_function` returns. The
    function uses an index."""
    ids = select(getattr(func, index_function)(value)).scalar_subquery()
    return UserRow.id == any_(cast(ids, ARRAY(Uuid)))


def _address(condition: FilterNode) -> str | None:
    """Return the address that the condition requires as `value` of the entry; None if it requires no specific
    address."""
    match condition:
        case LogicalExpr(op=LogicalOperator.and_, terms=terms):
            return next(filter(None, map(_address, terms)), None)
        case Comparison(attr_path=AttrPath(attr=name, sub_attr=None), op=Op.eq, value=str(value)):
            return value if name.lower() == "value" else None
    return None


def _compare_null(operand: SQLColumnExpression[Any], op: CompareOperator) -> Condition:
    """Return the condition for `eq null` or `ne null`. Raises `InvalidFilter`."""
    if op is Op.eq:
        return operand.is_(None)
    if op is Op.ne:
        return operand.is_not(None)
    raise InvalidFilter("null can only be compared by eq or ne")
