"""Providers: one folder for each kind, and `call_provider`, through which the pipeline calls all of them."""

from gatehouse.engine.providers.calls.calling import call_provider, dropped_fields
from gatehouse.engine.providers.calls.completing import complete_text
from gatehouse.engine.providers.calls.counting import count_tokens
from gatehouse.engine.providers.calls.kept import kept_response
from gatehouse.engine.providers.failure import ProviderFailed
from gatehouse.engine.providers.kind import CredentialField, ProviderKind, ProviderModel, ProviderNotConfigured
from gatehouse.engine.providers.registry import KINDS
from gatehouse.engine.providers.reply import Reply

__all__ = [
    "KINDS",
    "CredentialField",
    "ProviderFailed",
    "ProviderKind",
    "ProviderModel",
    "ProviderNotConfigured",
    "Reply",
    "call_provider",
    "complete_text",
    "count_tokens",
    "dropped_fields",
    "kept_response",
]
