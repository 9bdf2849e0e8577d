"""Excludes providers that cannot continue a response, or have no Responses API for a call that needs it."""

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.dialects.openai_responses.native import NATIVE_OPERATIONS
from gatehouse.engine.conversation.dialects.openai_responses.tools import read_tools
from gatehouse.engine.conversation.errors import InvalidField, ResponseNotFound, ResponsesApiRequired
from gatehouse.engine.exchange import CallRequest
from gatehouse.engine.ports import Ports
from gatehouse.engine.providers.registry import KINDS
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.policy.catalog import Candidate


def judge(x: CallRequest, candidate: Candidate, ports: Ports) -> Verdict:
    options = x.call.native
    if options is None:
        return ALLOW
    kind = KINDS.get(candidate.provider.kind)
    if kind is None or not kind.has_responses(candidate.provider.config):
        if NATIVE_OPERATIONS[x.call.dialect].native_only:
            return Refuse(ResponsesApiRequired())
        try:
            DIALECTS[x.call.dialect].refuse_unconvertible(x.call)
            if x.derived.fields:
                # One of these fields may be a hosted tool, which cannot be converted.
                read_tools(x.call.body)
        except InvalidField as error:
            return Refuse(error)
        return ALLOW
    if options.previous is not None and options.previous.provider != candidate.provider.id:
        if options.kept is not None:
            return Refuse(ResponseNotFound())
        return Refuse(
            InvalidField(
                "previous_response_id",
                f"`previous_response_id` names a response of the provider {options.previous.provider}. Name one of its"
                " models.",
            )
        )
    return ALLOW
