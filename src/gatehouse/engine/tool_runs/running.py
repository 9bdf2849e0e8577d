"""Runs the steps of a model call whose tools the gateway runs."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from decimal import Decimal
from typing import Any, Final, Protocol

import msgspec
import structlog

from gatehouse.engine.answers import event_stream_headers, refusal
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.exchange import Answer, Exchange, HostContext, Identified, Received
from gatehouse.engine.mcp.calling import ToolCalls
from gatehouse.engine.mcp.messages import MODERN, ClientMessage
from gatehouse.engine.ports import Ports
from gatehouse.engine.streaming import Blocks, kept_alive, late_headers
from gatehouse.engine.tool_runs.forms import FORMS, FunctionCall, RunForm, ToolOutput
from gatehouse.engine.tool_runs.plan import read_plan
from gatehouse.foundation.errors import BadGateway, Internal, Refusal
from gatehouse.foundation.identity import Caller

log = structlog.get_logger(__name__)

#: Maximum number of model calls of a run. In the last one, the model may not call tools.
MAX_STEPS: Final = 10
MAX_TOOL_CALLS: Final = 50
#: After this time no further tools are called.
MAX_RUN_SECONDS: Final = 300.0
_MAX_CALLS_AT_ONCE: Final = 8
#: Maximum number of characters of a result that the model receives.
_MAX_OUTPUT_CHARACTERS: Final = 200_000
#: characters of all results of a run together
MAX_RUN_CHARACTERS: Final = 1_000_000
_LIMIT_TEXT: Final = "Not called: the limit of this request is reached."
_TOO_LONG_TEXT: Final = "The results of this request are too long together, so this one is left out."
_CUT_NOTE: Final = "\n[The rest of the result was cut off.]"
#: comment in a stream that waits for tools
_KEEP_ALIVE: Final = b": running tools\n\n"
_COST_HEADER: Final = "X-Cost-USD"


class AnswerNotReadable(BadGateway):
    code = "tool_run_failed"
    message = "The model's answer cannot be read, so its tools cannot be run. Send the request again."


class AnswerCall(Protocol):
    """Answers a model call, as `Engine.answer`."""

    async def __call__(self, x: Received, *, caller: Caller, host: HostContext) -> Answer: ...


class ToolRuns:
    """Runs the tools in the model calls of one worker."""

    def __init__(self, ports: Ports, tool_calls: ToolCalls, answer_call: AnswerCall) -> None:
        self.ports = ports
        self._tool_calls = tool_calls
        self._answer_call = answer_call

    def form(self, body: bytes, x: Identified) -> RunForm | None:
        """Return the form of the run that a body requests. None if the gateway runs no tools in this call. Raises
        `Refusal`."""
        form = FORMS.get(x.received.dialect or "")
        plan = None if form is None else read_plan(body, x, self.ports)
        return None if form is None or plan is None else form(plan)

    async def proceed(self, form: RunForm, first: Answer) -> Answer:
        """Return the answer to the client. `first` is the answer to the first model call. A stream begins at once."""
        if first.refusal is not None or first.exchange is None or not form.runs_tools:
            return first
        run = _ToolRun(self, form, first, first.exchange)
        if not form.wants_stream:
            return await run.answer()
        headers = {**first.headers, **event_stream_headers(first.exchange)}
        headers.pop(_COST_HEADER, None)
        return Answer(status=200, headers=headers, stream=_RunStream(run), exchange=first.exchange)

    async def step(self, form: RunForm, x: Identified, number: int, rate: Any, *, is_last: bool) -> Answer:
        """Make the next model call of a run."""
        received = msgspec.structs.replace(
            x.received,
            request_id=f"{x.received.request_id}.{number}",
            body=form.body(is_last=is_last),
            started=self.ports.clock.monotonic(),
            received_at=self.ports.clock.now(),
        )
        return await self._answer_call(received, caller=x.caller, host=HostContext(rate=rate))

    async def outputs(self, x: Identified, calls: Sequence[FunctionCall]) -> list[ToolOutput]:
        """Call the tools, and return their results in the order of the calls."""
        slots = asyncio.Semaphore(_MAX_CALLS_AT_ONCE)

        async def output(call: FunctionCall) -> ToolOutput:
            async with slots:
                return await self._output(x, call)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(output(call)) for call in calls]
        return [task.result() for task in tasks]

    async def _output(self, x: Identified, call: FunctionCall) -> ToolOutput:
        server = x.policy.mcp_servers.get(call.tool.server.record.name)
        try:
            arguments = msgspec.json.decode(call.arguments or "{}")
        except (msgspec.DecodeError, RecursionError):
            arguments = None
        if type(arguments) is not dict:
            return ToolOutput(call=call, text="The arguments are not a JSON object.", failed=True)
        if server is None:
            return ToolOutput(call=call, text="The server no longer exists.", failed=True)
        # The record has the time of this call, and not that of the model call.
        started, received_at = self.ports.clock.monotonic(), self.ports.clock.now()
        received = msgspec.structs.replace(x.received, started=started, received_at=received_at)
        x = msgspec.structs.replace(x, received=received)
        params = {"name": call.tool.name, "arguments": arguments}
        message = ClientMessage(
            method="tools/call", id=1, params=params, revision=MODERN, body_bytes=len(call.arguments)
        )
        try:
            result, _ = await self._tool_calls.answer(x, server, call.tool.name, message, None)
        except Refusal as error:
            return ToolOutput(call=call, text=error.text, failed=True)
        return ToolOutput(call=call, text=_text(result), failed=result.get("isError", False))


class _ToolRun:
    """The steps of one run."""

    def __init__(self, runs: ToolRuns, form: RunForm, first: Answer, exchange: Exchange) -> None:
        self.form = form
        self.identified = exchange.identified
        self.dialect = DIALECTS[exchange.identified.received.dialect or ""]
        self._runs = runs
        self._first = first
        self._rate = exchange.rate
        self._started = runs.ports.clock.monotonic()
        self._cost_usd: Decimal | None = None
        self._tool_calls = 0
        self._is_limited = False
        self._characters_left = MAX_RUN_CHARACTERS

    async def answer(self) -> Answer:
        """Make the remaining steps. Return the final answer as a body, or a refusal."""
        try:
            return await self._steps()
        except AnswerNotReadable as error:
            reason: Refusal = error
        except (KeyError, IndexError, TypeError, AttributeError, ExceptionGroup):
            # An answer that is passed through is not validated, so the provider's calls may be malformed.
            log.warning("tool_run.reply_not_readable", request_id=self.identified.received.request_id, exc_info=True)
            reason = AnswerNotReadable()
        except Exception:
            log.exception("tool_run.fault", request_id=self.identified.received.request_id)
            reason = Internal()
        return refusal(self.dialect, reason, self._first.exchange)

    async def _steps(self) -> Answer:
        answer = self._first
        number = 1
        while True:
            if answer.refusal is not None or answer.exchange is None:
                return answer
            reply = _decoded(answer)
            self._add(answer.exchange, reply)
            calls = self.form.calls(reply) if number < MAX_STEPS else []
            if not calls:
                break
            self.form.extend(reply, await self._outputs(answer.exchange.identified, calls))
            number += 1
            is_last = number == MAX_STEPS or self._is_exhausted()
            answer = await self._runs.step(self.form, self.identified, number, self._rate, is_last=is_last)
            if is_last:
                number = MAX_STEPS
        headers = dict(answer.headers)
        if self._cost_usd is not None:
            headers[_COST_HEADER] = f"{self._cost_usd:f}"
        body = msgspec.json.encode(self.form.answer(reply))
        return Answer(status=answer.status, headers=headers, body=body, exchange=answer.exchange)

    async def _outputs(self, x: Identified, calls: Sequence[FunctionCall]) -> list[ToolOutput]:
        """Call the tools as far as the bounds of the run permit it."""
        permitted = [] if self._is_exhausted() else calls[: MAX_TOOL_CALLS - self._tool_calls]
        outputs = await self._runs.outputs(x, permitted)
        self._tool_calls += len(outputs)
        for index, output in enumerate(outputs):
            if len(output.text) > self._characters_left:
                outputs[index] = ToolOutput(call=output.call, text=_TOO_LONG_TEXT, failed=True)
            else:
                self._characters_left -= len(output.text)
        refused = [ToolOutput(call=call, text=_LIMIT_TEXT, failed=True) for call in calls[len(outputs) :]]
        self._is_limited = self._is_limited or bool(refused)
        return [*outputs, *refused]

    def _add(self, exchange: Exchange, reply: dict[str, Any]) -> None:
        self.form.add_usage(reply)
        if exchange.cost_usd is not None:
            self._cost_usd = (self._cost_usd or Decimal(0)) + exchange.cost_usd

    def _is_exhausted(self) -> bool:
        """Return whether no further tools may be called."""
        return (
            self._is_limited
            or self._tool_calls >= MAX_TOOL_CALLS
            or self._runs.ports.clock.monotonic() - self._started > MAX_RUN_SECONDS
            or (self._cost_usd or 0) >= self._runs.ports.tool_run_max_cost_usd
        )


class _RunStream(Blocks):
    """The stream of a run. Comments keep the connection open until the final answer is known."""

    def __init__(self, run: _ToolRun) -> None:
        self._run = run
        self._task: asyncio.Task[Answer] | None = None
        super().__init__()

    async def _read(self) -> AsyncGenerator[bytes, None]:
        self._task = task = asyncio.create_task(self._run.answer())
        try:
            async for comment in kept_alive(task, _KEEP_ALIVE):
                yield comment
            answer = task.result()
        finally:
            await self._end()
        if answer.refusal is not None:
            yield self._run.dialect.render_stream_error(answer.refusal)
            return
        if late := late_headers(answer.headers):
            yield late
        try:
            blocks = self._run.form.events(msgspec.json.decode(answer.body))
        except (KeyError, TypeError, AttributeError):
            blocks = [self._run.dialect.render_stream_error(AnswerNotReadable())]
        for block in blocks:
            yield block

    async def _end(self) -> None:
        task = self._task
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task})


def _decoded(answer: Answer) -> dict[str, Any]:
    """Return the body of an answer. Raises `AnswerNotReadable`."""
    try:
        reply = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise AnswerNotReadable from None
    if type(reply) is not dict:
        raise AnswerNotReadable
    return reply


def _text(result: dict[str, Any]) -> str:
    """Return the result of a tool as a text for the model. Pictures and other binary contents are only named."""
    texts = []
    for block in result["content"]:
        kind = block.get("type")
        resource = block.get("resource")
        if kind == "text" and type(block.get("text")) is str:
            texts.append(block["text"])
        elif type(resource) is dict and type(resource.get("text")) is str:
            texts.append(resource["text"])
        else:
            texts.append(f"[{kind if type(kind) is str else 'content'} that is not a text]"[:100])
    if not texts and "structuredContent" in result:
        texts.append(msgspec.json.encode(result["structuredContent"]).decode())
    text = "\n".join(texts)
    return text if len(text) <= _MAX_OUTPUT_CHARACTERS else text[:_MAX_OUTPUT_CHARACTERS] + _CUT_NOTE
