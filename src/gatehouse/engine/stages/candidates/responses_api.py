"""Excludes providers that cannot continue a response, or have no Responses API for a call that needs it."""

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.dialects.openai_responses.native import NATIVE_OPERATIONS
from gatehouse.engine.conversation.dialects.openai_responses.tools import read_tools
from gatehouse.engine.conversation.errors import InvalidField, ResponseNotFound, ResponsesApiRequired
from gatehouse.engine.exchange import CallRequest
from gatehouse.engine.ports import Ports
from gatehouse.engine.providers.registry import KINDS
from gatehouse.engine.stages.candidates.request_fields import fields_to_check
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.policy.catalog import Candidate


def judge(x: CallRequest, candidate: Candidate, ports: Ports) -> Verdict:
    operation = NATIVE_OPERATIONS.get(x.call.dialect)
    if operation is None:
        return ALLOW
    kind = KINDS.get(candidate.provider.kind)
    if kind is None or not kind.has_responses(candidate.provider.config):
        if operation.native_only:
            return Refuse(ResponsesApiRequired())
        try:
            DIALECTS[x.call.dialect].refuse_unconvertible(x.call)
            if fields_to_check(x):
                # One of these fields may be a hosted tool, which cannot be converted.
                read_tools(x.call.body)
        except InvalidField as error:
            return Refuse(error)
        return ALLOW
    previous = x.call.options.previous
    if previous is not None and previous.provider != candidate.provider.id:
        if x.call.kept is not None:
            return Refuse(ResponseNotFound())
        return Refuse(
            InvalidField(
                "previous_response_id",
                f"`previous_response_id` names a response of the provider {previous.provider}. Name one of its models.",
            )
        )
    return ALLOW
