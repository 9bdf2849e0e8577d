"""Presets: services and servers that an administrator can add by name. `presets.toml` contains the presets of this
version. Files of `gatehouse prices update -f` contain further ones."""

import tomllib
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from pydantic import Field, TypeAdapter

from gatehouse.foundation.http.bodies import Body
from gatehouse.platform.routing.fields import Line, ProviderQuirks
from gatehouse.policy.catalog import NO_QUIRKS, ProviderConfig, Quirks

BUILT_IN: Final = Path(__file__).with_name("presets.toml")
#: the key of the presets in a file
TABLE: Final = "presets"

Dialect = Literal["openai", "anthropic"]
#: the kind of a provider by the dialect of its preset
KINDS_BY_DIALECT: Final[Mapping[Dialect, str]] = {"openai": "openai_compatible", "anthropic": "byoe"}

_PageUrl = Annotated[str, Field(pattern=r"^https://[^\s/]+(/\S*)?$", max_length=2_000)]


class Preset(Body):
    """An entry of `presets.toml`, which describes the fields."""

    name: Line
    dialect: Dialect
    base_url: Annotated[str, Field(pattern=r"^https?://[^\s/?#]+(/[^\s?#]*[^\s?#/])?$", max_length=2_000)]
    key_required: bool
    quirks: ProviderQuirks = ProviderQuirks()
    documentation_url: _PageUrl | None = None
    source_url: _PageUrl
    recorded_on: date
    note: Line | None = None

    @property
    def kind(self) -> str:
        """The kind of the providers that are added with the preset."""
        return KINDS_BY_DIALECT[self.dialect]


_presets: Final = TypeAdapter(dict[str, Preset])
#: The presets of this version by id, in the order of the file.
PRESETS: Final[Mapping[str, Preset]] = _presets.validate_python(tomllib.loads(BUILT_IN.read_text("utf-8"))[TABLE])
_PRESET_BY_ADDRESS: Final = {(preset.kind, preset.base_url): preset for preset in PRESETS.values()}


def provider_config(kind: str, stored: Mapping[str, Any], preset: Mapping[str, Any] | None) -> ProviderConfig:
    """Return the configuration of a provider with the quirks of its preset. `stored` is the configuration in the
    database, and `preset` the preset of a file that it names, or None. An administrator's quirks take precedence over
    the quirks of the preset. A provider that names no preset has the built-in one with its kind and address."""
    config = msgspec.convert(stored, ProviderConfig)
    if preset is not None:
        inherited = msgspec.convert(preset.get("quirks", {}), Quirks)
    else:
        by_address = _PRESET_BY_ADDRESS.get((kind, config.base_url or ""))
        built_in = by_address if config.preset is None else PRESETS.get(config.preset)
        inherited = NO_QUIRKS if built_in is None else built_in.quirks.record
    quirks = (config.quirks or NO_QUIRKS).over(inherited)
    return msgspec.structs.replace(config, quirks=None if quirks == NO_QUIRKS else quirks)
