"""A credentials body as its kind wants it (reference 3, PUT credentials)."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from gatehouse.engine.providers.kind import CredentialField, Kind
from gatehouse.foundation.errors import BadRequest, FieldFault, Unprocessable
from gatehouse.policy.records import ProviderConfig

MAX_CHARS = 8192


class MissingCredentials(BadRequest):
    """`missing` names the fields."""

    code = "missing_fields"


class InvalidCredentials(Unprocessable):
    message = "The credentials are not valid."


class ReadCredentials(msgspec.Struct, frozen=True):
    """`secret` is to be sealed as one JSON object, `config` goes into the provider's config: None takes out what a
    flag stands for now."""

    secret: dict[str, str]
    config: dict[str, str | bool | None]


def read_credentials(kind: Kind, body: Mapping[str, Any]) -> ReadCredentials:
    """Raises `MissingCredentials` or `InvalidCredentials` with every fault. URLs are only checked for their form:
    where they lead is the egress guard's to judge."""
    defaults = {field.name: field.default for field in kind.credential_fields if field.default is not None}
    given = defaults | {
        field.name: body[field.name] for field in kind.credential_fields if body.get(field.name) not in (None, "")
    }
    # Whom a flag replaces: neither asked for nor taken.
    replaced = {field.name for field in kind.credential_fields if field.unless and given.get(field.unless) is True}
    missing = [
        field.name for field in kind.credential_fields if field.required and field.name not in given.keys() | replaced
    ]
    if missing:
        raise MissingCredentials(f"Missing: {', '.join(missing)}.", missing=missing)
    faults = [fault for field in kind.credential_fields if field.name in given and (fault := _fault(field, given))]
    known = {field.name for field in kind.credential_fields}
    faults += [FieldFault(name, f"A provider of kind {kind.name} has no such field.") for name in body.keys() - known]
    faults += [FieldFault(name, "Not together with the flag that replaces it.") for name in replaced & given.keys()]
    if faults:
        raise InvalidCredentials(faults=sorted(faults, key=lambda fault: fault.field))
    return ReadCredentials(
        secret={
            field.name: given[field.name] for field in kind.credential_fields if field.secret and field.name in given
        },
        config={
            field.name: given.get(field.name, False if field.form == "flag" else None)
            for field in kind.credential_fields
            if not field.secret and (field.name in given.keys() | replaced or field.form == "flag")
        },
    )


def lacks_secret(kind: Kind, config: ProviderConfig, secret: Mapping[str, str]) -> bool:
    """Whether a call cannot succeed for want of a secret. A `base_url` may lead to a server that wants none."""
    return config.base_url is None and any(
        field.secret and field.required and field.name not in secret and not getattr(config, field.unless or "", False)
        for field in kind.credential_fields
    )


def _fault(field: CredentialField, given: Mapping[str, Any]) -> FieldFault | None:
    value = given[field.name]
    if field.form == "flag":
        return None if isinstance(value, bool) else FieldFault(field.name, "Must be true or false.")
    if not isinstance(value, str):
        return FieldFault(field.name, "Must be a string.")
    # It becomes a header: a line break in it would let a second one in.
    if len(value) > MAX_CHARS or not value.isascii() or not value.isprintable() or value != value.strip():
        return FieldFault(field.name, f"Must be at most {MAX_CHARS} printable ASCII characters without outer spaces.")
    if field.form == "url" and not value.startswith(("https://", "http://")):
        return FieldFault(field.name, "Must begin with https:// or http://.")
    if field.pattern is not None and re.fullmatch(field.pattern, value) is None:
        return FieldFault(field.name, f"Must match {field.pattern}.")
    return None
