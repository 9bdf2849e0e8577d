"""Validation of credentials by the provider's kind (docs/providers.md)."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from gatehouse.engine.providers.kind import CredentialField, ProviderKind
from gatehouse.foundation.errors import BadRequest, FieldFault, Unprocessable
from gatehouse.policy.catalog import ProviderConfig

MAX_VALUE_CHARACTERS = 8192

_NOT_ALPHANUMERIC: Final = re.compile("[^A-Z0-9]")


class MissingCredentials(BadRequest):
    """Required fields are absent; `missing` lists them."""

    code = "missing_fields"


class InvalidCredentials(Unprocessable):
    message = "The credentials are not valid."


class ReadCredentials(msgspec.Struct, frozen=True):
    """Validated credentials. `secret` is sealed as one JSON object. `config` is merged into the provider's config. The
    value None in it removes a field of another way of authentication."""

    secret: dict[str, str]
    config: dict[str, str | bool | None]


def environment_name(provider_id: str) -> str:
    """Return the provider's id, or the name of a credential (`credential_key`), as it is written in the names of an
    outpost's environment variables. The label of a credential follows two underscores."""
    return _NOT_ALPHANUMERIC.sub("_", provider_id.replace("/", "//").upper())


def read_credentials(kind: ProviderKind, body: Mapping[str, Any]) -> ReadCredentials:
    """Validate a credentials body. URLs are only checked for their form: the egress guard checks their targets. Raises
    `MissingCredentials` or `InvalidCredentials` with all faults."""
    fields = kind.credential_fields
    defaults = {field.name: field.default for field in fields if field.default is not None}
    values, replaced = _validated(fields, body, defaults=defaults, owner=f"A provider of kind {kind.name}")
    return ReadCredentials(
        secret={field.name: values[field.name] for field in fields if field.secret and field.name in values},
        config={
            field.name: values.get(field.name, False if field.form == "flag" else None)
            for field in fields
            if not field.secret and (field.name in values.keys() | replaced or field.form == "flag")
        },
    )


def fields_per_credential(kind: ProviderKind, config: Mapping[str, Any]) -> tuple[CredentialField, ...]:
    """Return the fields that have a separate value in each credential of the provider. There are none if the provider
    uses the identity of the machine. A way of authentication is left out if one of its settings is missing in the
    provider's configuration."""
    fields = kind.credential_fields
    if any(field.form == "flag" and config.get(field.name) is True for field in fields):
        return ()
    incomplete_ways = {field.way for field in fields if not _is_own(field) and not config.get(field.name)} - {None}
    return tuple(field for field in fields if _is_own(field) and field.way not in incomplete_ways)


def _is_own(field: CredentialField) -> bool:
    """Return whether each credential of a provider has its own value of this field."""
    return field.secret or field.per_credential


def read_secret(kind: ProviderKind, config: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, str]:
    """Validate the fields of one credential of a provider with this configuration. Raises `MissingCredentials` or
    `InvalidCredentials` with all faults."""
    own = fields_per_credential(kind, config)
    if len(own) == 1:
        # Without a required field, a credential without any value would be accepted.
        own = (msgspec.structs.replace(own[0], required=True),)
    values, _ = _validated(own, body, defaults={}, owner=f"A credential of a provider of kind {kind.name}")
    return values


def _validated(
    fields: Sequence[CredentialField], body: Mapping[str, Any], *, defaults: Mapping[str, Any], owner: str
) -> tuple[dict[str, Any], set[str]]:
    """Return the valid values of a body, and the names of the fields that belong to other ways of authentication.
    `owner` begins the message about an unknown field. Raises `MissingCredentials` or `InvalidCredentials`."""
    values = {**defaults} | {
        field.name: _text(field, body[field.name]) for field in fields if body.get(field.name) not in (None, "")
    }
    # Fields of other ways of authentication are neither required nor accepted.
    way = _way(fields, values)
    replaced = {field.name for field in fields if field.way not in (None, way)}
    missing = [field.name for field in fields if field.required and field.name not in values.keys() | replaced]
    if missing:
        raise MissingCredentials(f"Missing: {', '.join(missing)}.", missing=missing)
    faults = [fault for field in fields if field.name in values and (fault := _fault(field, values))]
    names = {field.name for field in fields}
    faults += [FieldFault(name, f"{owner} has no such field.") for name in body.keys() - names]
    chosen = next((field.name for field in fields if field.way == way and field.name in values), "")
    faults += [
        FieldFault(field.name, f"Not together with {chosen}, which is another way of authentication.")
        for field in fields
        if field.name in replaced & values.keys() and field.form != "flag"
    ]
    if faults:
        raise InvalidCredentials(faults=sorted(faults, key=lambda fault: fault.field))
    values |= {
        field.name: field.normalize(values[field.name])
        for field in fields
        if field.normalize is not None and field.name in values
    }
    return values, replaced


def lacks_secret(kind: ProviderKind, config: ProviderConfig, secret: Mapping[str, str]) -> bool:
    """Return whether a required secret is missing. With a `base_url` none is required: the server may need no key."""
    if config.base_url is not None:
        return False

    def is_present(field: CredentialField) -> bool:
        if field.secret:
            return field.name in secret
        return field.way is None or bool(getattr(config, field.name)) or field.name in secret

    return not is_complete(kind, is_present)


def is_complete(kind: ProviderKind, is_present: Callable[[CredentialField], bool]) -> bool:
    """Return whether all required fields are present. If there are several ways of authentication, the required fields
    of one of them are enough."""
    complete_ways: dict[str, bool] = {}
    for field in kind.credential_fields:
        if not field.required:
            continue
        if field.way is not None:
            complete_ways[field.way] = complete_ways.get(field.way, True) and is_present(field)
        elif not is_present(field):
            return False
    return not complete_ways or any(complete_ways.values())


def _way(fields: Sequence[CredentialField], values: Mapping[str, Any]) -> str | None:
    """Return the way of authentication of a body; None if there is only one."""
    of_ways = [field for field in fields if field.way is not None]
    flags = [field.way for field in of_ways if field.form == "flag" and values.get(field.name) is True]
    others = [field.way for field in of_ways if field.form != "flag" and field.name in values]
    return next(iter([*flags, *others, *(field.way for field in of_ways)]), None)


def _text(field: CredentialField, value: Any) -> Any:
    """Return a document as text. A client may send a document as an object, too."""
    if field.form == "document" and isinstance(value, dict):
        try:
            return msgspec.json.encode(value).decode()
        except (ValueError, RecursionError):
            # The object contains half of a surrogate pair, or is nested too deeply. An empty document is refused.
            return ""
    return value


def _fault(field: CredentialField, values: Mapping[str, Any]) -> FieldFault | None:
    value = values[field.name]
    if field.form == "flag":
        return None if isinstance(value, bool) else FieldFault(field.name, "Must be true or false.")
    if not isinstance(value, str):
        return FieldFault(field.name, "Must be a string.")
    if field.normalize is not None:
        try:
            value = field.normalize(value)
        except ValueError as error:
            return FieldFault(field.name, str(error))
    # The value becomes a header. A line break in it would inject another header.
    if len(value) > MAX_VALUE_CHARACTERS or not value.isascii() or not value.isprintable() or value != value.strip():
        return FieldFault(
            field.name, f"Must be at most {MAX_VALUE_CHARACTERS} printable ASCII characters without outer spaces."
        )
    if field.form == "url" and not value.startswith(("https://", "http://")):
        return FieldFault(field.name, "Must begin with https:// or http://.")
    if field.pattern is not None and re.fullmatch(field.pattern, value) is None:
        return FieldFault(field.name, f"Must match {field.pattern}.")
    return None
