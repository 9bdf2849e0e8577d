"""Validation of credentials by the provider's kind (docs/providers.md)."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gatehouse.engine.providers.kind import CredentialField, ProviderKind
from gatehouse.foundation.errors import BadRequest, FieldFault, Unprocessable
from gatehouse.policy.records import ProviderConfig

MAX_VALUE_CHARACTERS = 8192

_NOT_ALPHANUMERIC: Final = re.compile("[^A-Z0-9]")


class MissingCredentials(BadRequest):
    """Required fields are absent; `missing` names them."""

    code = "missing_fields"


class InvalidCredentials(Unprocessable):
    message = "The credentials are not valid."


class ReadCredentials(msgspec.Struct, frozen=True):
    """Validated credentials. `secret` is sealed as one JSON object, `config` is merged into the provider's config: None
    removes a field that a flag replaces."""

    secret: dict[str, str]
    config: dict[str, str | bool | None]


def environment_name(provider_id: str) -> str:
    """Return the provider's id as it stands in the names of an outpost's environment variables."""
    return _NOT_ALPHANUMERIC.sub("_", provider_id.upper())


def read_credentials(kind: ProviderKind, body: Mapping[str, Any]) -> ReadCredentials:
    """Validate a credentials body. URLs are only checked for their form: the egress guard checks their targets. Raises
    `MissingCredentials` or `InvalidCredentials` with all faults."""
    defaults = {field.name: field.default for field in kind.credential_fields if field.default is not None}
    values = defaults | {
        field.name: body[field.name] for field in kind.credential_fields if body.get(field.name) not in (None, "")
    }
    # Fields that a flag replaces: neither required nor accepted.
    replaced = {field.name for field in kind.credential_fields if field.unless and values.get(field.unless) is True}
    missing = [
        field.name for field in kind.credential_fields if field.required and field.name not in values.keys() | replaced
    ]
    if missing:
        raise MissingCredentials(f"Missing: {', '.join(missing)}.", missing=missing)
    faults = [fault for field in kind.credential_fields if field.name in values and (fault := _fault(field, values))]
    names = {field.name for field in kind.credential_fields}
    faults += [FieldFault(name, f"A provider of kind {kind.name} has no such field.") for name in body.keys() - names]
    faults += [FieldFault(name, "Not together with the flag that replaces it.") for name in replaced & values.keys()]
    if faults:
        raise InvalidCredentials(faults=sorted(faults, key=lambda fault: fault.field))
    return ReadCredentials(
        secret={
            field.name: values[field.name] for field in kind.credential_fields if field.secret and field.name in values
        },
        config={
            field.name: values.get(field.name, False if field.form == "flag" else None)
            for field in kind.credential_fields
            if not field.secret and (field.name in values.keys() | replaced or field.form == "flag")
        },
    )


def lacks_secret(kind: ProviderKind, config: ProviderConfig, secret: Mapping[str, str]) -> bool:
    """Return whether a required secret is missing. With a `base_url` none is required: the server may need no key."""
    return config.base_url is None and any(
        field.secret and field.required and field.name not in secret and not getattr(config, field.unless or "", False)
        for field in kind.credential_fields
    )


def _fault(field: CredentialField, values: Mapping[str, Any]) -> FieldFault | None:
    value = values[field.name]
    if field.form == "flag":
        return None if isinstance(value, bool) else FieldFault(field.name, "Must be true or false.")
    if not isinstance(value, str):
        return FieldFault(field.name, "Must be a string.")
    # The value becomes a header: a line break in it would inject another.
    if len(value) > MAX_VALUE_CHARACTERS or not value.isascii() or not value.isprintable() or value != value.strip():
        return FieldFault(
            field.name, f"Must be at most {MAX_VALUE_CHARACTERS} printable ASCII characters without outer spaces."
        )
    if field.form == "url" and not value.startswith(("https://", "http://")):
        return FieldFault(field.name, "Must begin with https:// or http://.")
    if field.pattern is not None and re.fullmatch(field.pattern, value) is None:
        return FieldFault(field.name, f"Must match {field.pattern}.")
    return None
