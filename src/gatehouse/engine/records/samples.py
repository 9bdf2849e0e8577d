"""Samples of an organization's requests, for dry runs of drafts of the organization's rules
(`stages.calls.sampling`)."""

from typing import Any
from uuid import UUID

import msgspec

from gatehouse.policy.governance import PolicyAction


class CallSample(msgspec.Struct, kw_only=True):
    """The sample of a call in progress. `texts` are the caller's texts before DLP changes them. They are empty if the
    call was not chosen; such a sample is not stored."""

    texts: list[str] = []
    #: the provider's answer before DLP changes it: a body, or whole events. None if no answer is stored
    answer: list[bytes] | None = None
    #: the variables of policy rules for the first candidate; None if the request ended before policy rules were
    #: evaluated
    facts: dict[str, Any] | None = None
    #: the result of the active policy rules for that candidate
    policy_action: PolicyAction = "ALLOW"


class Contents(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The contents of a sample, sealed at rest. New fields are only appended and have a default."""

    texts: list[str]
    #: the texts of the answer; None if no answer is stored
    answer: list[str] | None = None
    #: the strongest effect that DLP had on these texts at the time (`decide.Effect`); None if unknown
    dlp_action: str | None = None
    #: the caller's groups, whose overrides apply
    groups: list[UUID] = []
    #: the same variables as `CallSample.facts`, with `time` in RFC 3339 format
    facts: dict[str, Any] | None = None
    #: the result of the active policy rules; None if the request ended before policy rules were evaluated
    policy_action: PolicyAction | None = None


_decoder: msgspec.json.Decoder[list[str] | Contents] = msgspec.json.Decoder(list[str] | Contents)


def encode(contents: Contents) -> bytes:
    return msgspec.json.encode(contents)


def decode(encoded: bytes) -> Contents:
    """Decode the contents of a sample. In an earlier format they are only a list of the request's texts."""
    decoded = _decoder.decode(encoded)
    return decoded if isinstance(decoded, Contents) else Contents(texts=decoded)
