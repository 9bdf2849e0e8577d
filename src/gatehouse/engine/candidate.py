"""A model that could answer a call."""

import msgspec

from gatehouse.policy.records import ModelRecord, ProviderRecord


class Candidate(msgspec.Struct, frozen=True):
    """One place that could answer: an entry of the catalog at its provider."""

    provider: ProviderRecord
    model: ModelRecord
