"""Builds request bodies from the types of the official client libraries. For each position of a type that can be a
string or a number, yields a small valid body with a chosen value at that position."""

import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel
from pydantic.fields import FieldInfo

#: Maximum depth of nested types.
MAX_DEPTH = 9
_LISTS = frozenset({"list", "List", "Iterable", "Sequence", "SequenceNotStr"})


class Case(NamedTuple):
    """`path` is the position of the value: fields, `[]` for a list, `{}` for a name or value that the caller
    chooses."""

    path: tuple[str, ...]
    value: Any

    @property
    def field(self) -> str:
        """Return the name of the last field."""
        return next((name for name in reversed(self.path) if name not in {"[]", "{}"}), "")


def fields_of(kind: Any) -> dict[str, tuple[Any, bool]] | None:
    """Return a type's fields by their JSON names: their types, and whether they are required."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {field.alias or name: (_whole(field), field.is_required()) for name, field in kind.model_fields.items()}
    if typing.is_typeddict(kind) or hasattr(kind, "__required_keys__"):
        hints = typing.get_type_hints(kind, include_extras=True)
        return {name: (hint, _is_required(hint, total=kind.__total__)) for name, hint in hints.items()}
    return None


def minimal(kind: Any) -> Any:
    """Return the smallest value of a type."""
    kind = _bare(kind)
    if _is_union(kind):
        return minimal(next((arg for arg in typing.get_args(kind) if _bare(arg) is not type(None)), None))
    if typing.get_origin(kind) is typing.Literal:
        return typing.get_args(kind)[0]
    if _is_list(kind):
        return []
    fields = fields_of(kind)
    if fields is not None:
        return {name: minimal(inner) for name, (inner, required) in fields.items() if required}
    return {str: "x", int: 1, float: 0.5, bool: True, dict: {}, type(None): None}.get(
        typing.get_origin(kind) or kind, "x"
    )


def strings(kind: Any, value: Callable[[str], str]) -> Iterator[Case]:
    """`value` returns the string for a field's name. Names that the caller chooses are strings too."""
    return _cases(kind, lambda at, field: value(field) if at in {str, object} else None, (), "")


def numbers(kind: Any, value: int) -> Iterator[Case]:
    return _cases(kind, lambda at, _: value if at in {int, float} else None, (), "")


def _cases(kind: Any, value: Callable[[Any, str], Any], seen: tuple[Any, ...], field: str) -> Iterator[Case]:
    kind = _bare(kind)
    if kind in seen or len(seen) > MAX_DEPTH:
        return
    fields = fields_of(kind)
    if fields is not None:
        smallest = minimal(kind)
        for name, (inner, _) in fields.items():
            for case in _cases(inner, value, (*seen, kind), name):
                yield Case((name, *case.path), {**smallest, name: case.value})
    elif _is_union(kind):
        yield from _of_union(kind, value, seen, field)
    elif _is_list(kind):
        for case in _cases(typing.get_args(kind)[0], value, seen, field):
            yield Case(("[]", *case.path), [case.value])
    elif (typing.get_origin(kind) or kind) in {dict, Mapping} or getattr(
        typing.get_origin(kind), "__name__", ""
    ) == "Mapping":
        inner = (typing.get_args(kind) or (str, object))[1]
        if (name := value(str, "")) is not None:
            yield Case(("{}",), {name: minimal(inner)})
        for case in _cases(inner, value, seen, ""):
            yield Case(("{}", *case.path), {"x": case.value})
    else:
        at = str if typing.get_origin(kind) is typing.Literal else object if kind is Any else kind
        if (result := value(at, field)) is not None:
            yield Case((), result)


def _of_union(kind: Any, value: Callable[[Any, str], Any], seen: tuple[Any, ...], field: str) -> Iterator[Case]:
    """Yield each alternative once, because several members of a union may be strings."""
    actual = set()
    for arg in typing.get_args(kind):
        for case in _cases(arg, value, seen, field):
            if case.path or repr(case.value) not in actual:
                actual.add(repr(case.value))
                yield case


def _bare(kind: Any) -> Any:
    """Return the type without `Required` and other annotations."""
    while True:
        origin = typing.get_origin(kind)
        if origin in {typing.Annotated, typing.Required, typing.NotRequired} or str(origin).endswith(
            ("typing_extensions.Required", "typing_extensions.NotRequired")
        ):
            kind = typing.get_args(kind)[0]
        elif hasattr(kind, "__value__"):
            kind = kind.__value__
        else:
            return kind


def _is_union(kind: Any) -> bool:
    return typing.get_origin(kind) is typing.Union or type(kind).__name__ == "UnionType"


def _is_list(kind: Any) -> bool:
    return getattr(typing.get_origin(kind), "__name__", "") in _LISTS


def _is_required(hint: Any, *, total: bool) -> bool:
    # The clients' annotations are strings, so `TypedDict` cannot determine the required fields itself.
    name = str(typing.get_origin(hint)).rpartition(".")[2]
    return name == "Required" or (total and name != "NotRequired")


def _whole(field: FieldInfo) -> Any:
    return field.annotation
