"""Asking a model from within administration: the caller's request, through the whole pipeline, as if it had come to
`/v1/chat/completions`. It is authenticated and limited, judged, inspected and recorded like any other."""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Final

import msgspec
from fastapi import Depends, Request

from gatehouse.engine.conversation.dialects import PASSING
from gatehouse.engine.conversation.errors import NotConvertible
from gatehouse.engine.conversation.form import Completion, Text
from gatehouse.engine.exchange import Answer, Asked, Identified, Received
from gatehouse.engine.routing.attempts import AllProvidersFailed
from gatehouse.engine.stages.route import AUTO, default_model
from gatehouse.foundation.http import request_id
from gatehouse.foundation.identity import Caller
from gatehouse.ingress.in_progress import InProgressCall
from gatehouse.platform.conversations.conversations.context import Said
from gatehouse.platform.conversations.conversations.errors import ModelNotUsable
from gatehouse.platform.ports import Host, TheHost
from gatehouse.policy.records import ModelRecord
from gatehouse.policy.snapshot import Snapshot

DIALECT: Final = "openai_chat"


class Models:
    """One request's way to the models. `labels`: the highest numbers of labels in the conversation so far."""

    def __init__(self, request: Request, host: Host, call: InProgressCall) -> None:
        state = request.scope["state"]
        self._call = call
        self._calls = host.calls
        self._engine = host.engine
        self._policies = host.ports.policies
        self._caller: Caller = state["caller"]
        self._rate = state["rate"]
        self.received: Received = msgspec.structs.replace(state["received"], dialect=DIALECT)

    async def ask(self, model: str, said: Sequence[Said], labels: Mapping[str, int], *, stream: bool = False) -> Answer:
        """For this request itself, which was counted against its limit when it arrived. Refusals are answers too."""
        return await self._answer(self.received, self._call, model, said, labels, stream=stream)

    async def ask_aside(self, path: str, model: str, said: Sequence[Said], labels: Mapping[str, int]) -> Answer:
        """A request of its own that this one has caused: with its own id and record, under a path that says what it is
        for, and within what this one was counted as."""
        x = msgspec.structs.replace(
            self.received,
            path=path,
            request_id=request_id.choose(None),
            received_at=time.time(),
            started=time.monotonic(),
        )
        with self._calls.one() as call:
            return await self._answer(x, call, model, said, labels)

    async def named(self, name: str) -> ModelRecord | None:
        """The catalog's entry, None for `auto`. Raises `ModelNotUsable`."""
        if name == AUTO:
            return None
        policy = await self._policy()
        identified = Identified(received=self.received, caller=self._caller, policy=policy, scope="chat:write")
        usable = await self._engine.usable_models(identified)
        model = next((model for model in policy.find_models(name) if model in usable), None)
        if model is None:
            raise ModelNotUsable(name)
        return model

    async def known(self, name: str) -> ModelRecord | None:
        """What the catalog says of it, where it says something; of `auto`, what its default is."""
        policy = await self._policy()
        return default_model(policy) if name == AUTO else policy.find_model(name)

    async def _policy(self) -> Snapshot:
        assert self._caller.tenant_id is not None
        return await self._policies.current(self._caller.tenant_id)

    async def _answer(
        self,
        x: Received,
        call: InProgressCall,
        model: str,
        said: Sequence[Said],
        labels: Mapping[str, int],
        *,
        stream: bool = False,
    ) -> Answer:
        messages = [msgspec.structs.asdict(each) for each in said]
        x.body = msgspec.json.encode({"model": model, "stream": stream, "messages": messages})
        answer = await self._engine.answer(x, on_admitted=call.let_in, counted=self._rate, labels=labels)
        return answer if answer.answered is None or answer.stream is not None else _readable(answer)


async def _models(request: Request, host: TheHost) -> AsyncIterator[Models]:
    """In progress until the request's answer is sent, streams too."""
    with host.calls.one() as call:
        yield Models(request, host, call)


TheModels = Annotated[Models, Depends(_models)]


def _readable(answer: Answer) -> Answer:
    """The gateway passes on what a provider of the same dialect says, whatever it is; here it has to say something."""
    try:
        completion(answer)
    except NotConvertible:
        error = AllProvidersFailed("The provider's answer cannot be read.")
        body = PASSING[DIALECT].render_error(error)
        return msgspec.structs.replace(answer, status=error.status, body=body, refusal=error, answered=None)
    return answer


def completion(answer: Answer) -> Completion:
    """Of a whole answer that is no error."""
    told: Completion = PASSING[DIALECT].parse_reply(answer.body)
    return told


def text_of(said: Completion) -> str:
    return "".join(part.text for part in said.parts if isinstance(part, Text))


def question_in(asked: Asked) -> str:
    """What the model was shown of the last message."""
    content: str = asked.call.body["messages"][-1]["content"]
    return content


def name_of(model: ModelRecord) -> str:
    return f"{model.provider}/{model.model_id}"
