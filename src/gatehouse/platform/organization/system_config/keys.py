"""Every key there is: what it means, what it may be, and what it is where nobody has set it."""

import os
import re
from collections.abc import Callable
from typing import Final

import msgspec

from gatehouse.foundation import settings
from gatehouse.foundation.settings import BadSettings, Settings

#: says what is wrong with a value, or None
Judge = Callable[[str], str | None]


def boolean(value: str) -> str | None:
    return None if value in {"true", "false"} else "must be 'true' or 'false'"


def whole_number(least: int, most: int) -> Judge:
    def judge(value: str) -> str | None:
        good = re.fullmatch(r"[0-9]{1,9}", value) is not None and least <= int(value) <= most
        return None if good else f"must be a whole number from {least} to {most}"

    return judge


def one_of(*values: str) -> Judge:
    return lambda value: None if value in values else f"must be one of {', '.join(values)}"


def model(value: str) -> str | None:
    good = value == "" or re.fullmatch(r"[A-Za-z0-9_.-]{1,64}/\S{1,255}", value) is not None
    return None if good else "must be provider/model_id, or empty for the conversation's own model"


class Key(msgspec.Struct, frozen=True):
    """`environment` is the variable that an organization without a value of its own follows."""

    name: str
    category: str
    #: None where the value holds for the whole platform: it is one of its settings, and shown as that
    judge: Judge | None
    default: str
    description: str

    @property
    def editable(self) -> bool:
        return self.judge is not None

    @property
    def environment(self) -> str:
        return self.name.upper()


def written(value: object) -> str:
    """A setting as configuration shows it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _setting(name: str, category: str, description: str) -> Key:
    return Key(name, category, None, written(Settings.model_fields[name].default), description)


_TIERS: Final = one_of("tier_1", "tier_2", "tier_3", "tier_4")

KEYS: Final[dict[str, Key]] = {
    key.name: key
    for key in (
        Key("auto_title_enabled", "conversation", boolean, "true", "Conversations get a title from a model."),
        Key("auto_title_model", "conversation", model, "", "The model that makes titles; empty: the conversation's."),
        Key(
            "max_conversation_messages", "conversation", whole_number(1, 100_000), "1000",
            "Messages that a conversation may have.",
        ),
        Key("governance_enabled", "security", boolean, "true", "Policy rules are in force."),
        Key(
            "registry_enforcement", "security", one_of("off", "warn", "block"), "off",
            "What is done about models that the model registry does not hold as validated.",
        ),
        Key(
            "unregistered_model_tier", "security", _TIERS, "tier_4",
            "The risk tier that policy rules assume for a model that is not registered.",
        ),
        Key(
            "outpost_provider_credentials", "security", one_of("off", "sealed"), "off",
            "Outposts are sent providers' credentials, sealed to the key of each one's certificate.",
        ),
        Key("mfa_required", "auth", boolean, "false", "Everybody needs a second factor for sensitive operations."),
        _setting("oauth_scope_enforcement", "auth", "Tokens are held to their scopes."),
        _setting("rate_limit_requests_per_minute", "limits", "The general limit of requests a minute."),
        _setting("api_variant", "platform", "The contract's variant."),
    )
}  # fmt: skip


def environments(key: Key) -> str | None:
    """What the key's variable says, None where it is not set. Raises `BadSettings`."""
    assert key.judge is not None
    told = os.environ.get(key.environment, "").strip()
    if not told:
        return None
    if key.judge is boolean and (truth := settings.boolean(told)) is not None:
        told = written(truth)
    fault = key.judge(told)
    if fault is not None:
        raise BadSettings(f"{key.environment}: {fault}")
    return told


def check_environment() -> None:
    """At start, as all settings are: a misspelt `MFA_REQUIRED` must not ask nobody. Raises `BadSettings`."""
    faults = []
    for key in KEYS.values():
        if key.editable:
            try:
                environments(key)
            except BadSettings as error:
                faults.append(str(error))
    if faults:
        raise BadSettings("\n".join(faults))
