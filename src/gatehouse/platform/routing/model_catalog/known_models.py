"""Known models: capabilities, limits and prices by vendor and model id (`known_models.toml`, docs/providers.md).

A vendor is a kind of provider with a fixed address, such as `openai`, or a preset, such as `groq`. A provider belongs
to a vendor if its calls go to the vendor's own address. Its models then have the vendor's prices.
"""

import re
import tomllib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Set
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, model_validator

from gatehouse.engine.providers import KINDS
from gatehouse.engine.providers.wires import Wire
from gatehouse.foundation.http.bodies import Body
from gatehouse.platform.routing.fields import MAX_USD_PER_TOKEN, MODEL_ID, SLUG, Line, ModelId
from gatehouse.platform.routing.providers.presets import PRESETS, TABLE, Preset
from gatehouse.policy.catalog import ProviderRecord

BUILT_IN: Final = Path(__file__).with_name("known_models.toml")
MAX_FILE_BYTES: Final = 4 * 1024 * 1024
MAX_PRESETS: Final = 200
#: the version of the form of a file
VERSION: Final = 1
#: Maximum number of faults in the message about a bad file.
MAX_FAULTS: Final = 20

#: The prices of a file are in USD per this number of tokens, the prices of the catalog in USD per token.
TOKENS_OF_A_PRICE: Final = 1_000_000

#: the keys of a faulty field, and what is wrong
_Fault: TypeAlias = tuple[tuple[str, ...], str]

_Tokens = Annotated[int, Field(ge=1, le=1_000_000_000)]
_Url = Annotated[str, Field(pattern=r"^https://[^\s/]+(/\S*)?$", max_length=2_000)]
#: USD per million tokens.
_Price = Annotated[
    Decimal, Field(strict=False, ge=0, le=MAX_USD_PER_TOKEN * TOKENS_OF_A_PRICE, max_digits=15, decimal_places=9)
]


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


_Key = TypeVar("_Key", bound=Hashable)


def _unambiguous(pairs: Iterable[tuple[_Key, str]]) -> dict[_Key, str]:
    """Return a mapping of the pairs, without the keys that have several values."""
    values: dict[_Key, set[str]] = {}
    for key, value in pairs:
        values.setdefault(key, set()).add(value)
    return {key: min(several) for key, several in values.items() if len(several) == 1}


#: The vendor's own address, by kind of provider. Kinds for servers of an organization's own have none.
_HOMES: Final = {
    name: kind.home for name, kind in KINDS.items() if isinstance(kind, Wire) and (kind.home or "").startswith("https:")
}
_VENDOR_BY_ORIGIN: Final[dict[str, str]] = {
    **{
        _origin(preset.base_url): preset_id
        for preset_id, preset in PRESETS.items()
        if preset.base_url.startswith("https:")
    },
    **{_origin(home): name for name, home in _HOMES.items() if home is not None},
}
#: The regions with the known prices, by kind whose prices depend on the region.
_PRICED_REGIONS: Final = {
    name: kind.priced_regions for name, kind in KINDS.items() if isinstance(kind, Wire) and kind.priced_regions
}
#: Ids that a preset cannot have: `version` and `presets` are keys of a file.
_RESERVED: Final = frozenset({*KINDS, "config", "version", TABLE})
VENDORS: Final = frozenset({*_VENDOR_BY_ORIGIN.values(), *_PRICED_REGIONS})


class KnownPrices(Body):
    """Prices in USD per million tokens. None means that tokens of the class cost as much as `input`."""

    input: _Price
    output: _Price | None = None
    cached_input: _Price | None = None
    cache_write: _Price | None = None

    @property
    def columns(self) -> dict[str, Decimal | None]:
        """The prices in USD per token, by their columns in the catalog."""
        return {
            "cost_per_input_token": _per_token(self.input),
            "cost_per_output_token": _per_token(self.output),
            "cost_per_cached_input_token": _per_token(self.cached_input),
            "cost_per_cache_write_token": _per_token(self.cache_write),
        }


class KnownCapabilities(Body):
    """The capabilities of a model. None means unknown."""

    streaming: bool | None = None
    function_calling: bool | None = None
    vision: bool | None = None
    structured_output: bool | None = None
    embeddings: bool | None = None
    code_execution: bool | None = None
    moderation: bool | None = None
    rerank: bool | None = None
    image_generation: bool | None = None
    transcription: bool | None = None
    speech: bool | None = None
    reasoning: bool | None = None


Source = Literal["known_models", "price_file"]


class KnownModel(Body):
    """An entry of `known_models.toml`, which describes the fields."""

    #: where the prices come from
    source: ClassVar[Source] = "known_models"

    aliases: Annotated[list[ModelId], Field(max_length=50, default_factory=list)]
    context_window: _Tokens | None = None
    max_output_tokens: _Tokens | None = None
    capabilities: KnownCapabilities = KnownCapabilities()
    usd_per_million_tokens: KnownPrices | None = None
    source_url: _Url
    specification_url: _Url | None = None
    recorded_on: date
    note: Line | None = None

    @model_validator(mode="after")
    def _has_output_price(self) -> "KnownModel":
        prices = self.usd_per_million_tokens
        if prices is not None and prices.output is None and not self.capabilities.embeddings:
            raise ValueError("usd_per_million_tokens.output: is required, except for embeddings")
        return self


class PricedByFile(KnownModel):
    """A model whose prices come from a file of the organization."""

    source: ClassVar[Source] = "price_file"


class BadPriceFile(Exception):
    """A file of models is invalid. The message lists the faults, one on each line, with line number and keys."""


class KnownModels:
    """Known models by vendor and id, and presets of files."""

    def __init__(
        self, models: Mapping[tuple[str, str], KnownModel], presets: Mapping[str, Preset] = MappingProxyType({})
    ) -> None:
        #: the presets of files by id
        self.presets = presets
        #: vendors that are neither of this version nor presets of the file: the organization's presets of earlier files
        self.earlier_vendors = tuple(
            dict.fromkeys(name for name, _ in models if name not in VENDORS and name not in presets)
        )
        #: in the order of the file, by vendor and id; without aliases
        self.models = models
        self._by_name = {
            (vendor, name): model for (vendor, model_id), model in models.items() for name in (model_id, *model.aliases)
        }
        self._by_address = _unambiguous(((preset.kind, preset.base_url), name) for name, preset in presets.items())
        self._by_origin = _unambiguous((_origin(preset.base_url), name) for name, preset in presets.items())

    def find(self, vendor: str | None, model_id: str) -> KnownModel | None:
        """Return the vendor's model with this id or alias, or None."""
        return None if vendor is None else self._by_name.get((vendor, model_id))

    def find_at(self, provider: ProviderRecord, model_id: str) -> KnownModel | None:
        """Return the model of a provider with this id or alias, or None."""
        return self.find(self._vendor_at(provider), model_id)

    def _vendor_at(self, provider: ProviderRecord) -> str | None:
        """Return the preset that the provider names, if its calls go to the preset's host, or else the preset or vendor
        with its address. Several presets can have one host: the host alone decides only if it has one preset."""
        base_url, preset_id = provider.config.base_url or "", provider.config.preset or ""
        origin = _origin(base_url)
        preset = self.presets.get(preset_id) or PRESETS.get(preset_id)
        if preset is not None and _origin(preset.base_url) == origin:
            return preset_id
        by_address = self._by_address.get((provider.kind, base_url))
        return by_address or vendor_of(provider) or self._by_origin.get(origin)


def parse(content: str, *, with_earlier: bool = False) -> KnownModels:
    """Read a file of models. Raises `BadPriceFile`. With `with_earlier`, models may belong to presets of earlier files,
    which are not in this file (`earlier_vendors`)."""
    try:
        document = tomllib.loads(content, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadPriceFile(f"The file is not valid TOML: {error}") from None
    faults: list[_Fault] = []
    presets = dict(_presets(document, faults))
    models = dict(_entries(document, {*VENDORS, *presets}, faults, with_earlier=with_earlier))
    ids: dict[tuple[str, str], str] = {}
    for (vendor, model_id), model in models.items():
        for name in (model_id, *model.aliases):
            other = ids.setdefault((vendor, name), model_id)
            if other != model_id:
                faults.append(((vendor, model_id), f"{name!r} is also a name of {other!r}"))
    if faults:
        lines = _lines(content)
        texts = [f"{_place(path, lines)}: {message}" for path, message in faults[:MAX_FAULTS]]
        if len(faults) > MAX_FAULTS:
            texts.append(f"and {len(faults) - MAX_FAULTS} more")
        raise BadPriceFile("\n".join(texts))
    return KnownModels(models, presets)


@cache
def built_in() -> KnownModels:
    """Return the models of `known_models.toml`."""
    return parse(BUILT_IN.read_text("utf-8"))


def vendor_of(provider: ProviderRecord) -> str | None:
    """Return the vendor that a provider's calls go to. None for any other address, and for a region whose prices are
    not recorded."""
    regions = _PRICED_REGIONS.get(provider.kind)
    if regions is not None:
        return provider.kind if provider.config.cloud_region in regions else None
    base_url = provider.config.base_url or _HOMES.get(provider.kind)
    return None if base_url is None else _VENDOR_BY_ORIGIN.get(_origin(base_url))


def _per_token(price: Decimal | None) -> Decimal | None:
    return None if price is None else price / TOKENS_OF_A_PRICE


def _entries(
    document: dict[str, Any], vendors: Set[str], faults: list[_Fault], *, with_earlier: bool
) -> Iterator[tuple[tuple[str, str], KnownModel]]:
    for vendor, models in document.items():
        if vendor in {"version", TABLE}:
            continue
        may_be_earlier = with_earlier and re.fullmatch(SLUG, vendor) and vendor not in _RESERVED
        if vendor not in vendors and not may_be_earlier:
            names = ", ".join(sorted(vendors))
            faults.append(((vendor,), f"is not a vendor. Use one of {names}, or add a preset of this name."))
            continue
        if not isinstance(models, dict):
            faults.append(((vendor,), "must be a table of models"))
            continue
        for model_id, fields in models.items():
            key = (vendor, model_id)
            if not re.fullmatch(MODEL_ID, model_id):
                faults.append((key, "a model id has 1 to 255 characters without spaces"))
                continue
            try:
                yield key, KnownModel.model_validate(fields)
            except ValidationError as error:
                faults += _faults_of(key, error)


def _presets(document: dict[str, Any], faults: list[_Fault]) -> Iterator[tuple[str, Preset]]:
    """Check the version, and yield the presets."""
    if document.get("version", VERSION) != VERSION:
        faults.append((("version",), f"must be {VERSION}: this version of Gatehouse reads no other form"))
    presets = document.get(TABLE, {})
    if not isinstance(presets, dict) or len(presets) > MAX_PRESETS:
        faults.append(((TABLE,), f"must be a table of at most {MAX_PRESETS} presets"))
        return
    for preset_id, fields in presets.items():
        if not re.fullmatch(SLUG, preset_id) or preset_id in _RESERVED:
            faults.append(
                ((TABLE, preset_id), "an id has letters, digits and dashes, and is not the name of a kind of provider")
            )
            continue
        try:
            yield preset_id, Preset.model_validate(fields)
        except ValidationError as error:
            faults += _faults_of((TABLE, preset_id), error)


def _faults_of(path: tuple[str, ...], error: ValidationError) -> Iterator[_Fault]:
    for fault in error.errors(include_url=False, include_input=False):
        yield (*path, *map(str, fault["loc"])), fault["msg"].removeprefix("Value error, ")


def _lines(content: str) -> dict[tuple[str, ...], int]:
    """Return the line number of each table's header, by the header's keys."""
    lines = {}
    for number, line in enumerate(content.splitlines(), 1):
        if line.lstrip().startswith("["):
            try:
                lines[_path(tomllib.loads(line))] = number
            except (tomllib.TOMLDecodeError, RecursionError):
                continue
    return lines


def _path(header: dict[str, Any]) -> tuple[str, ...]:
    keys: list[str] = []
    table: Any = header
    while isinstance(table, dict) and table:
        key, table = next(iter(table.items()))
        keys.append(key)
    return tuple(keys)


def _place(path: tuple[str, ...], lines: Mapping[tuple[str, ...], int]) -> str:
    """Return the place of a fault for a message: the line number of the innermost table that has it, and its keys."""
    keys = ".".join(key if re.fullmatch(r"[A-Za-z0-9_-]{1,63}", key) else f'"{key[:300]}"' for key in path)
    outer = [header for header in lines if path[: len(header)] == header]
    if outer:
        return f"line {lines[max(outer, key=len)]}: {keys}"
    inner = [number for header, number in lines.items() if header[: len(path)] == path]
    return f"line {min(inner)}: {keys}" if inner else keys
