"""Refuses candidates that do not offer the operation of the call (docs/surfaces.md)."""

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.operations import OPERATIONS
from gatehouse.engine.exchange import CallRequest
from gatehouse.engine.ports import Ports
from gatehouse.engine.providers.kind import ProviderNotConfigured, offer
from gatehouse.engine.providers.offers import not_listed, not_offered
from gatehouse.engine.providers.registry import KINDS
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.policy.catalog import Candidate


def judge(x: CallRequest, candidate: Candidate, ports: Ports) -> Verdict:
    dialect = DIALECTS.get(x.call.dialect)
    # A scanned text has no dialect.
    operation = "chat" if dialect is None else dialect.operation
    if operation in {"chat", "count_tokens", "kept_response"}:
        # Every provider offers chats, and the gateway estimates tokens if a provider does not count them.
        return ALLOW
    kind = KINDS.get(candidate.provider.kind)
    if kind is None:
        return ALLOW
    try:
        if offer(kind, operation, candidate.provider.config, candidate.model.model_id) is None:
            return Refuse(not_offered(operation, candidate))
    except ProviderNotConfigured:
        # The attempt fails with this reason.
        return ALLOW
    use = OPERATIONS[operation].use
    if use not in {"chat", "embeddings"} and candidate.model.capabilities.get(use) is False:
        return Refuse(not_listed(operation, candidate))
    return ALLOW
