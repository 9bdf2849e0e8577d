"""The configuration keys with their descriptions, validators and defaults."""

import os
import re
from collections.abc import Callable
from typing import Final

import msgspec

from gatehouse.foundation import settings
from gatehouse.foundation.settings import BadSettings, Settings

#: Returns the fault of a value, or None if the value is valid.
Validator = Callable[[str], str | None]


class OneOf(msgspec.Struct, frozen=True):
    """Accepts one of these values."""

    values: tuple[str, ...]

    def __call__(self, value: str) -> str | None:
        return None if value in self.values else f"must be one of {', '.join(self.values)}"


boolean: Final = OneOf(("true", "false"))


def whole_number(minimum: int, maximum: int) -> Validator:
    def validate(value: str) -> str | None:
        is_valid = re.fullmatch(r"[0-9]{1,9}", value) is not None and minimum <= int(value) <= maximum
        return None if is_valid else f"must be a whole number from {minimum} to {maximum}"

    return validate


def model(value: str) -> str | None:
    is_valid = value == "" or re.fullmatch(r"[A-Za-z0-9_.-]{1,64}/\S{1,255}", value) is not None
    return None if is_valid else "must be provider/model_id, or empty for the conversation's own model"


class ConfigKey(msgspec.Struct, frozen=True):
    """A configuration key. `environment` is the environment variable that provides the value for organizations without
    a value of their own."""

    name: str
    category: str
    #: None if the value is platform-wide. It is then a setting of the process and cannot be changed.
    validate: Validator | None
    default: str
    description: str

    @property
    def editable(self) -> bool:
        return self.validate is not None

    @property
    def choices(self) -> tuple[str, ...] | None:
        """Return the valid values, or None if they cannot be listed."""
        return self.validate.values if isinstance(self.validate, OneOf) else None

    @property
    def environment(self) -> str:
        return self.name.upper()


def to_text(value: object) -> str:
    """Return the value of a setting as text. Booleans are in lower case. A setting without a value is empty."""
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def _setting(name: str, category: str, description: str) -> ConfigKey:
    return ConfigKey(name, category, None, to_text(Settings.model_fields[name].default), description)


_TIERS: Final = OneOf(("tier_1", "tier_2", "tier_3", "tier_4"))

KEYS: Final[dict[str, ConfigKey]] = {
    key.name: key
    for key in (
        ConfigKey("auto_title_enabled", "conversation", boolean, "true", "A model creates titles of conversations."),
        ConfigKey(
            "auto_title_model", "conversation", model, "", "The model that creates titles; empty: the conversation's.",
        ),
        ConfigKey(
            "max_conversation_messages", "conversation", whole_number(1, 100_000), "1000",
            "Maximum number of messages of a conversation.",
        ),
        ConfigKey("governance_enabled", "security", boolean, "true", "Policy rules are active."),
        ConfigKey(
            "registry_enforcement", "security", OneOf(("off", "warn", "block")), "off",
            "The action for models that the model registry does not list as validated.",
        ),
        ConfigKey(
            "unregistered_model_tier", "security", _TIERS, "tier_4",
            "The risk tier that policy rules assume for a model that is not registered.",
        ),
        ConfigKey(
            "outpost_provider_credentials", "security", OneOf(("off", "sealed")), "off",
            "Whether outposts receive credentials of providers and MCP servers, sealed to their certificate's key.",
        ),
        ConfigKey(
            "mfa_required", "auth", boolean, "false", "All users need a second factor for sensitive operations.",
        ),
        _setting("oauth_scope_enforcement", "auth", "The scopes of tokens are enforced."),
        _setting(
            "oauth_secret_grace_seconds", "auth",
            "Time in seconds for which the previous secret of an OAuth client is accepted, if the rotation specifies"
            " none.",
        ),
        _setting("mail_from", "mail", "Sender of the platform's mails; empty: no mail server is set up (SMTP_URL)."),
        _setting("rate_limit_requests_per_minute", "limits", "The general limit of requests a minute."),
        _setting("api_variant", "platform", "The variant of the API."),
    )
}  # fmt: skip


def environment_value(key: ConfigKey) -> str | None:
    """Return the value of the key's environment variable, or None if the variable is not set. Raises `BadSettings`."""
    assert key.validate is not None
    value = os.environ.get(key.environment, "").strip()
    if not value:
        return None
    if key.validate is boolean and (parsed := settings.boolean(value)) is not None:
        value = to_text(parsed)
    fault = key.validate(value)
    if fault is not None:
        raise BadSettings(f"{key.environment}: {fault}")
    return value


def check_environment() -> None:
    """Check all environment variables of the keys at the start, so that an invalid value of `MFA_REQUIRED` does not
    silently disable it. Raises `BadSettings`."""
    faults = []
    for key in KEYS.values():
        if key.editable:
            try:
                environment_value(key)
            except BadSettings as error:
                faults.append(str(error))
    if faults:
        raise BadSettings("\n".join(faults))
