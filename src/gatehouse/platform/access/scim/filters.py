"""`filter` of a list, parsed and turned into SQL (RFC 7644, 3.4.2.2; reference 2, SCIM resources: on what).

A comparison with what is not there is neither true nor false in SQL. That is false to whoever selects by it; only under
`not` it must be said.
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
from gatehouse.platform.access.scim.urns import ENTERPRISE, GROUP, USER
from gatehouse.platform.access.users.table import UserRow

Op = CompareOperator
Condition = ColumnElement[bool]

_MAX_CHARS: Final = 4_096
_ORDER: Final[Mapping[CompareOperator, Callable[[Any, Any], Any]]] = {
    Op.eq: operator.eq, Op.gt: operator.gt, Op.ge: operator.ge, Op.lt: operator.lt, Op.le: operator.le,
}  # fmt: skip


class Text(NamedTuple):
    """Compared without its case unless it is `exact`. `finder` is as for `_found_by`."""

    column: SQLColumnExpression[Any]
    exact: bool = False
    finder: str | None = None

    def compared(self, op: CompareOperator, value: Any) -> Condition:
        if value is None:
            return _with_nothing(self.column, op)
        if not isinstance(value, str):
            raise InvalidFilter("the attribute is compared with text, in double quotes")
        held = self.column if self.exact else func.lower(self.column)
        sought = literal(value) if self.exact else func.lower(value)
        match op:
            case Op.eq if self.finder:
                return _found_by(self.finder, value)
            case Op.ne:
                return held.is_distinct_from(sought)
            case Op.co | Op.sw | Op.ew:
                return self._like(held, op, value)
            case _:
                compared: Condition = _ORDER[op](held, sought)
                return compared

    def _like(self, held: SQLColumnExpression[Any], op: CompareOperator, value: str) -> Condition:
        text = value if self.exact else value.lower()
        if op is Op.co:
            return held.contains(text, autoescape=True)
        return held.startswith(text, autoescape=True) if op is Op.sw else held.endswith(text, autoescape=True)


class Flag(NamedTuple):
    """Directories write "True" and "False" too."""

    column: SQLColumnExpression[Any]

    def compared(self, op: CompareOperator, value: Any) -> Condition:
        if value is None:
            return _with_nothing(self.column, op)
        wanted = {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else value
        if not isinstance(wanted, bool) or op not in {Op.eq, Op.ne}:
            raise InvalidFilter("the attribute is compared by eq or ne with true or false")
        return self.column.is_(wanted is (op is Op.eq))


class Id(NamedTuple):
    column: SQLColumnExpression[Any]

    def compared(self, op: CompareOperator, value: Any) -> Condition:
        if op is not Op.eq or not isinstance(value, str):
            raise InvalidFilter("id is compared by eq with text, in double quotes")
        try:
            return self.column == UUID(value)
        except ValueError:
            return false()


Attribute = Text | Flag | Id


class Entries(ABC):
    """A multi-valued attribute."""

    @abstractmethod
    def fitting(self, condition: FilterNode) -> Condition:
        """That one of its entries fits."""


class Emails(Entries):
    def fitting(self, condition: FilterNode) -> Condition:
        item = func.jsonb_array_elements(_EMAILS).table_valued(column("value", JSONB), name="entry")
        entry = item.c.value
        attributes: Attributes = {
            "value": Text(entry["value"].astext),
            "type": Text(entry["type"].astext),
            "display": Text(entry["display"].astext),
            "primary": Flag(func.coalesce(entry["primary"].astext.cast(Boolean), false())),
        }
        inside = _Compiler(attributes).compiled(condition)
        fits = select(literal(1)).select_from(item).where(inside).exists()
        address = _address(condition)
        # Not needed for what is true, but for how soon it is known.
        return fits if address is None else and_(_found_by("gatehouse_users_by_address", address), fits)


class Members(Entries):
    def fitting(self, condition: FilterNode) -> Condition:
        inside = _Compiler({"value": Id(MemberRow.user_id)}).compiled(condition)
        return select(literal(1)).where(MemberRow.group_id == GroupRow.id, inside).exists()


#: As `people.shown` shows them: those of a user whom no directory has written are the one that signs in.
_EMAILS: Final = func.coalesce(
    UserRow.directory["emails"],
    func.jsonb_build_array(func.jsonb_build_object("value", UserRow.email, "type", "work", "primary", True)),
)

#: By their names in lower case. Entra ID asks for a manager by the one name and by the other.
Attributes = Mapping[str, Attribute | Entries]
_manager: Final = Text(UserRow.directory[ENTERPRISE]["manager"]["value"].astext)
USERS: Final[Attributes] = {
    "id": Id(UserRow.id),
    "externalid": Text(UserRow.external_id, exact=True),
    "username": Text(func.coalesce(UserRow.user_name, UserRow.email), finder="gatehouse_users_by_name"),
    "active": Flag(UserRow.is_active),
    "emails": Emails(),
    "manager": _manager,
    f"{ENTERPRISE}:manager".lower(): _manager,
    f"{ENTERPRISE}:manager.value".lower(): _manager,
}
GROUPS: Final[Attributes] = {
    "id": Id(GroupRow.id),
    "externalid": Text(GroupRow.external_group_id, exact=True),
    "displayname": Text(GroupRow.name),
    "members": Members(),
}
_CORE: Final = {"", USER.lower(), GROUP.lower()}


def compiled(text: str, attributes: Attributes) -> Condition:
    """Raises `InvalidFilter`."""
    if len(text) > _MAX_CHARS:
        raise InvalidFilter(f"a filter may have {_MAX_CHARS} characters")
    try:
        tree = ScimFilter[Any](text).ast
    except InvalidFilterException as error:
        raise InvalidFilter(error.detail) from None
    return _Compiler(attributes).compiled(tree)


class _Compiler:
    def __init__(self, attributes: Attributes) -> None:
        self._attributes = attributes

    def compiled(self, node: FilterNode) -> Condition:
        match node:
            case LogicalExpr(op=op, terms=terms):
                joined = and_ if op is LogicalOperator.and_ else or_
                return joined(*map(self.compiled, terms))
            case Not(expr=inner):
                return not_(func.coalesce(self.compiled(inner), false()))
            case Comparison(attr_path=path, op=op, value=value):
                return self._comparison(path, op, value)
            case Present(attr_path=path):
                return self._present(path)
            case ValuePath(attr_path=path, val_filter=condition):
                found = self._find(path)
                if isinstance(found, Entries):
                    return found.fitting(condition)
        raise InvalidFilter(f"not supported: {node}")

    def _comparison(self, path: AttrPath, op: CompareOperator, value: Any) -> Condition:
        if isinstance(value, str) and "\0" in value:
            raise InvalidFilter("a value may not contain NUL characters")
        found = self._find(path)
        if not isinstance(found, Entries):
            return found.compared(op, value)
        inside = AttrPath(path.sub_attr or "value")
        if op is Op.ne:
            # No entry equals it: "one is another" would hold of nearly everybody.
            return not_(found.fitting(Comparison(inside, Op.eq, value)))
        return found.fitting(Comparison(inside, op, value))

    def _present(self, path: AttrPath) -> Condition:
        found = self._find(path)
        if isinstance(found, Entries):
            return found.fitting(Present(AttrPath(path.sub_attr or "value")))
        return found.column.is_not(None)

    def _find(self, path: AttrPath) -> Attribute | Entries:
        uri = (path.uri or "").lower()
        name = path.attr.lower() if uri in _CORE else f"{uri}:{path.attr.lower()}"
        found = self._attributes.get(name)
        if path.sub_attr and not isinstance(found, Entries):
            found = self._attributes.get(f"{name}.{path.sub_attr.lower()}")
        if found is None:
            raise InvalidFilter(f"{path} is not an attribute that is filtered by")
        return found


def _found_by(finder: str, value: str) -> Condition:
    """That the user is among those whom this function of the database finds by an index."""
    found = select(getattr(func, finder)(value)).scalar_subquery()
    return UserRow.id == any_(cast(found, ARRAY(Uuid)))


def _address(condition: FilterNode) -> str | None:
    """What an entry's `value` must be for the condition to hold of it, if it says so."""
    match condition:
        case LogicalExpr(op=LogicalOperator.and_, terms=terms):
            return next(filter(None, map(_address, terms)), None)
        case Comparison(attr_path=AttrPath(attr=name, sub_attr=None), op=Op.eq, value=str(value)):
            return value if name.lower() == "value" else None
    return None


def _with_nothing(held: SQLColumnExpression[Any], op: CompareOperator) -> Condition:
    """`eq null` and `ne null`."""
    if op is Op.eq:
        return held.is_(None)
    if op is Op.ne:
        return held.is_not(None)
    raise InvalidFilter("null is compared by eq or ne")
