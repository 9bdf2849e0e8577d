"""`attributes` and `excludedAttributes`: which part of a resource is shown (RFC 7644, 3.9)."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gatehouse.platform.access.scim.errors import InvalidValue
from gatehouse.platform.access.scim.urns import ENTERPRISE, GROUP, USER

#: Shown whatever is asked for.
_ALWAYS: Final = frozenset({"schemas", "id"})
_CORE: Final = (USER.lower() + ":", GROUP.lower() + ":")
_EXTENSION: Final = ENTERPRISE.lower()
_MAX_CHARS: Final = 4_096

#: Names in lower case, each with those of its sub-attributes that are meant; none is all of it.
_Names = Mapping[str, frozenset[str]]


class Projection:
    """Of one request. A parameter that names nothing is as if it were not there; a name that is unknown, too."""

    def __init__(self, attributes: str | None, excluded: str | None) -> None:
        """Raises `InvalidValue` where both are given: they exclude each other."""
        self._wanted = _names(attributes)
        self._unwanted = _names(excluded)
        if self._wanted and self._unwanted:
            raise InvalidValue("attributes and excludedAttributes exclude each other: send one of them")

    def shows(self, name: str) -> bool:
        """Whether anything of this attribute is shown: for what is costly to find out."""
        if self._wanted:
            return name in self._wanted
        return self._unwanted.get(name) != frozenset()

    def __call__(self, resource: dict[str, Any]) -> dict[str, Any]:
        if not self._wanted and not self._unwanted:
            return resource
        shown = {}
        for name, value in resource.items():
            folded = name.lower()
            if folded in _ALWAYS:
                shown[name] = value
            elif self.shows(folded):
                below = (self._wanted or self._unwanted).get(folded)
                shown[name] = self._part(value, below) if below else value
        return shown

    def _part(self, value: Any, names: frozenset[str]) -> Any:
        if isinstance(value, msgspec.Raw):
            value = msgspec.json.decode(value)
        if isinstance(value, list):
            return [self._part(each, names) for each in value]
        if not isinstance(value, dict):
            return value
        return {name: each for name, each in value.items() if (name.lower() in names) is bool(self._wanted)}


def _names(parameter: str | None) -> _Names:
    if parameter is not None and len(parameter) > _MAX_CHARS:
        raise InvalidValue(f"attributes may have {_MAX_CHARS} characters")
    found: dict[str, set[str] | None] = {}
    for each in (parameter or "").split(","):
        name, below = _split(each.strip().lower())
        if name and not below:
            found[name] = None
        elif name and found.get(name, below) is not None:
            found.setdefault(name, set()).add(below)  # type: ignore[union-attr]
    return {name: frozenset(below or ()) for name, below in found.items()}


def _split(name: str) -> tuple[str, str]:
    """An attribute and its sub-attribute. An extension counts as an attribute, under its whole name."""
    for prefix in _CORE:
        name = name.removeprefix(prefix)
    if name == _EXTENSION or name.startswith(_EXTENSION + ":"):
        return _EXTENSION, name[len(_EXTENSION) + 1 :].partition(".")[0]
    first, _, second = name.partition(".")
    return first, second
