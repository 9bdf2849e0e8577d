"""A sample of an organization's requests, on which drafts of its rules are tried (`stages.sampling`)."""

from typing import Any
from uuid import UUID

import msgspec

from gatehouse.policy.governance import PolicyAction


class Sample(msgspec.Struct, kw_only=True):
    """What is kept of a call that is under way. `texts` are the caller's, before DLP changes them."""

    texts: list[str]
    #: the answer as the provider gave it, before DLP changes it: a body, or whole events; None: there is none to keep
    answer: list[bytes] | None = None
    #: the variables of policy rules, about the first place that could answer; None: no rule would have been asked
    facts: dict[str, Any] | None = None
    #: what the policy rules in force said about that place
    policy_action: PolicyAction = "ALLOW"


class Contents(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a sample says: sealed at rest. Fields are only ever added, with a default."""

    texts: list[str]
    #: the answer's texts; None: no answer is kept
    answer: list[str] | None = None
    #: the strongest of what DLP did about these texts then (`decide.Effect`); None: unknown
    dlp_action: str | None = None
    #: the caller's, whose overrides hold
    groups: list[UUID] = []
    #: as `Sample.facts`; `time` as RFC 3339
    facts: dict[str, Any] | None = None
    #: None: no policy rule was asked
    policy_action: PolicyAction | None = None


_decoder: msgspec.json.Decoder[list[str] | Contents] = msgspec.json.Decoder(list[str] | Contents)


def encode(contents: Contents) -> bytes:
    return msgspec.json.encode(contents)


def decode(encoded: bytes) -> Contents:
    """Also of the version before, which kept a request's texts alone, as a list."""
    decoded = _decoder.decode(encoded)
    return decoded if isinstance(decoded, Contents) else Contents(texts=decoded)
