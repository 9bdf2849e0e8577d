"""Calls models for conversations. The caller's request passes the whole pipeline, as for `/v1/chat/completions`: it is
authenticated, limited, inspected and recorded like any other request."""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Final

import msgspec
from fastapi import Depends, Request

from gatehouse.engine.conversation.dialects import PASSING
from gatehouse.engine.conversation.errors import NotConvertible
from gatehouse.engine.conversation.form import Completion, Text
from gatehouse.engine.exchange import Answer, CallRequest, HostContext, Identified, Received
from gatehouse.engine.routing.failed_attempts import AllProvidersFailed
from gatehouse.engine.stages.candidates.route import AUTO, default_model
from gatehouse.engine.usable_models import usable_models
from gatehouse.foundation.http.middleware import request_id
from gatehouse.foundation.identity import Caller
from gatehouse.ingress.in_progress import InProgressCall
from gatehouse.platform.conversations.conversations.calls.context import PromptMessage
from gatehouse.platform.conversations.conversations.errors import ModelNotUsable
from gatehouse.platform.request.ports import Host, TheHost
from gatehouse.policy.catalog import ModelRecord
from gatehouse.policy.snapshot import Snapshot

DIALECT: Final = "openai_chat"


class ModelCaller:
    """Calls models on behalf of one request. `labels` are the highest label numbers in the conversation so far."""

    def __init__(self, request: Request, host: Host, call: InProgressCall) -> None:
        state = request.scope["state"]
        self._call = call
        self._calls = host.calls
        self._engine = host.engine
        self._policies = host.ports.policies
        self._caller: Caller = state["caller"]
        self._rate = state["rate"]
        self.received: Received = msgspec.structs.replace(state["received"], dialect=DIALECT)

    async def ask(
        self, model: str, messages: Sequence[PromptMessage], labels: Mapping[str, int], *, stream: bool = False
    ) -> Answer:
        """Call a model for this request, which was already counted against the rate limit when it arrived. A refusal is
        returned as an answer."""
        return await self._answer(self.received, self._call, model, messages, labels, stream=stream)

    async def ask_separately(
        self, path: str, model: str, messages: Sequence[PromptMessage], labels: Mapping[str, int]
    ) -> Answer:
        """Call a model in a separate request that this request causes. The separate request has its own id and record,
        and a `path` that identifies its purpose. It is not counted against the rate limit again."""
        received = msgspec.structs.replace(
            self.received,
            path=path,
            request_id=request_id.choose(None),
            received_at=time.time(),
            started=time.monotonic(),
        )
        with self._calls.one() as call:
            return await self._answer(received, call, model, messages, labels)

    async def usable_model(self, name: str) -> ModelRecord | None:
        """Return the catalog entry of a model, or None for `auto`. Raises `ModelNotUsable`."""
        if name == AUTO:
            return None
        policy = await self._policy()
        identified = Identified(received=self.received, caller=self._caller, policy=policy, scope="chat:write")
        usable = usable_models(identified, self._engine.ports)
        model = next((model for model in policy.find_models(name) if model in usable), None)
        if model is None:
            raise ModelNotUsable(name)
        return model

    async def catalog_entry(self, name: str) -> ModelRecord | None:
        """Return the catalog entry of a model, or None if there is none. For `auto`, returns the entry of the default
        model."""
        policy = await self._policy()
        return default_model(policy) if name == AUTO else policy.find_model(name)

    async def _policy(self) -> Snapshot:
        assert self._caller.tenant_id is not None
        return await self._policies.current(self._caller.tenant_id)

    async def _answer(
        self,
        received: Received,
        call: InProgressCall,
        model: str,
        messages: Sequence[PromptMessage],
        labels: Mapping[str, int],
        *,
        stream: bool = False,
    ) -> Answer:
        body = {"model": model, "stream": stream, "messages": [msgspec.structs.asdict(message) for message in messages]}
        received = msgspec.structs.replace(received, body=msgspec.json.encode(body))
        answer = await self._engine.answer(
            received, on_admitted=call.let_in, host=HostContext(rate=self._rate, last_label_numbers=labels)
        )
        return answer if answer.exchange is None or answer.stream is not None else _require_readable(answer)


async def _model_caller(request: Request, host: TheHost) -> AsyncIterator[ModelCaller]:
    """Yield the model caller of the request. The call is treated as in progress until the response, including a stream,
    is sent."""
    with host.calls.one() as call:
        yield ModelCaller(request, host, call)


TheModelCaller = Annotated[ModelCaller, Depends(_model_caller)]


def _require_readable(answer: Answer) -> Answer:
    """Return the answer, or an error if the answer cannot be parsed. The gateway passes answers of the same dialect
    through without parsing, but a conversation needs their text."""
    try:
        completion(answer)
    except NotConvertible:
        error = AllProvidersFailed("The provider's answer cannot be read.")
        body = PASSING[DIALECT].render_error(error)
        return msgspec.structs.replace(answer, status=error.status, body=body, refusal=error, exchange=None)
    return answer


def completion(answer: Answer) -> Completion:
    """Parse a complete answer that is not an error."""
    result: Completion = PASSING[DIALECT].parse_reply(answer.body)
    return result


def completion_text(reply: Completion) -> str:
    return "".join(part.text for part in reply.parts if isinstance(part, Text))


def inspected_question(call_request: CallRequest) -> str:
    """Return the last message as the model received it, with labels in place of the redacted values."""
    content: str = call_request.call.body["messages"][-1]["content"]
    return content


def full_name(model: ModelRecord) -> str:
    return f"{model.provider}/{model.model_id}"
