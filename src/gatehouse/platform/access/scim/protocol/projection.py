"""Selects the attributes of a resource in a response, by `attributes` and `excludedAttributes` (RFC 7644, 3.9)."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gatehouse.platform.access.scim.errors import InvalidValue
from gatehouse.platform.access.scim.protocol.urns import ENTERPRISE, GROUP, USER

#: Attributes that every response contains.
_REQUIRED_ATTRIBUTES: Final = frozenset({"schemas", "id"})
_CORE_URN_PREFIXES: Final = (USER.lower() + ":", GROUP.lower() + ":")
_EXTENSION_URN: Final = ENTERPRISE.lower()
_MAX_PARAMETER_CHARACTERS: Final = 4_096

#: Maps lower-case attribute names to the selected sub-attributes. An empty set selects the whole attribute.
_Names = Mapping[str, frozenset[str]]


class Projection:
    """The attribute selection of one request. Empty parameters and unknown names are ignored."""

    def __init__(self, attributes: str | None, excluded: str | None) -> None:
        """Parse the parameters. Raises `InvalidValue` if both are sent, because they exclude each other."""
        self._included = _names(attributes)
        self._excluded = _names(excluded)
        if self._included and self._excluded:
            raise InvalidValue("attributes and excludedAttributes exclude each other: send one of them")

    def includes(self, name: str) -> bool:
        """Return whether any part of this attribute is selected, so that callers can skip expensive attributes."""
        if self._included:
            return name in self._included
        return self._excluded.get(name) != frozenset()

    def __call__(self, resource: dict[str, Any]) -> dict[str, Any]:
        """Return the selected attributes of the resource."""
        if not self._included and not self._excluded:
            return resource
        selected = {}
        for name, value in resource.items():
            lower_name = name.lower()
            if lower_name in _REQUIRED_ATTRIBUTES:
                selected[name] = value
            elif self.includes(lower_name):
                sub_attributes = (self._included or self._excluded).get(lower_name)
                selected[name] = self._select(value, sub_attributes) if sub_attributes else value
        return selected

    def _select(self, value: Any, names: frozenset[str]) -> Any:
        if isinstance(value, msgspec.Raw):
            value = msgspec.json.decode(value)
        if isinstance(value, list):
            return [self._select(item, names) for item in value]
        if not isinstance(value, dict):
            return value
        return {name: item for name, item in value.items() if (name.lower() in names) is bool(self._included)}


def _names(parameter: str | None) -> _Names:
    if parameter is not None and len(parameter) > _MAX_PARAMETER_CHARACTERS:
        raise InvalidValue(f"attributes may have at most {_MAX_PARAMETER_CHARACTERS} characters")
    sub_attributes_by_name: dict[str, set[str] | None] = {}
    for item in (parameter or "").split(","):
        name, sub_attribute = _split(item.strip().lower())
        if name and not sub_attribute:
            sub_attributes_by_name[name] = None
        elif name and sub_attributes_by_name.get(name, sub_attribute) is not None:
            sub_attributes_by_name.setdefault(name, set()).add(sub_attribute)  # type: ignore[union-attr]
    return {name: frozenset(sub_attributes or ()) for name, sub_attributes in sub_attributes_by_name.items()}


def _split(name: str) -> tuple[str, str]:
    """Return an attribute and its sub-attribute. An extension is treated as one attribute, whose name is its whole
    URN."""
    for prefix in _CORE_URN_PREFIXES:
        name = name.removeprefix(prefix)
    if name == _EXTENSION_URN or name.startswith(_EXTENSION_URN + ":"):
        return _EXTENSION_URN, name[len(_EXTENSION_URN) + 1 :].partition(".")[0]
    attribute, _, sub_attribute = name.partition(".")
    return attribute, sub_attribute
