"""Every key there is: what it means, what it may be, and what it is where nobody has set it."""

import re
from collections.abc import Callable
from typing import Final

import msgspec

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
    judge: Judge
    default: str
    description: str
    editable: bool = True

    @property
    def environment(self) -> str:
        return self.name.upper()


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
            "registry_enforcement", "security", boolean, "false",
            "Only models that the model registry holds as validated may be used.",
        ),
        Key(
            "unregistered_model_tier", "security", _TIERS, "tier_4",
            "The risk tier that policy rules assume for a model that is not registered.",
        ),
        Key("mfa_required", "auth", boolean, "false", "Everybody needs a second factor for sensitive operations."),
        Key(
            "oauth_scope_enforcement", "auth", boolean, "true", "Tokens are held to their scopes.", editable=False,
        ),
        Key(
            "rate_limit_requests_per_minute", "limits", whole_number(1, 10**8), "60",
            "The general limit of requests a minute.", editable=False,
        ),
        Key("api_variant", "platform", one_of("a", "b", "c"), "a", "The contract's variant.", editable=False),
    )
}  # fmt: skip
