"""Presets: services and servers that an administrator can add by name (`presets.toml`)."""

import tomllib
from datetime import date
from pathlib import Path
from typing import Final

import msgspec


class Preset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of `presets.toml`, which describes the fields."""

    id: str
    name: str
    kind: str
    base_url: str
    key_required: bool
    documentation_url: str
    source_url: str
    recorded_on: date
    note: str | None = None


def _read() -> tuple[Preset, ...]:
    entries = tomllib.loads(Path(__file__).with_name("presets.toml").read_text("utf-8"))
    return tuple(msgspec.convert({"id": preset_id, **fields}, Preset) for preset_id, fields in entries.items())


#: in the order of the file
PRESETS: Final = _read()
