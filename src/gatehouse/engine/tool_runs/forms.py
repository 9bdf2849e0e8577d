"""The forms of a tool run: how a client's API represents functions, their calls and results, and the final answer."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

import msgspec

from gatehouse.engine.conversation.decoding.optional_fields import word
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.tool_runs.events import chat_events, response_events
from gatehouse.engine.tool_runs.plan import OfferedTool, Plan

#: the value of `tool_choice` with which the model must answer without calling a tool
_NO_TOOLS: Final = "none"


#: items of the Responses API with a call that the client runs
_CLIENT_CALLS: Final = frozenset(
    {"custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call", "tool_search_call"}
)


class FunctionCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a function by the model. `arguments` is JSON as the model wrote it."""

    call_id: str
    tool: OfferedTool
    arguments: str


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call, as a text for the model."""

    call: FunctionCall
    text: str
    failed: bool


class RunForm(ABC):
    """The form of one run. It collects what the steps of the run add to the conversation."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.wants_stream = plan.body.get("stream") is True
        self._usage: dict[str, Any] = {}
        self._has_steps = False

    @property
    def runs_tools(self) -> bool:
        return self._plan.runs_tools

    def body(self, *, is_last: bool = False) -> bytes:
        """Return the body of the next model call. In the last one, the model may not call tools."""
        plan = self._plan
        body = {**plan.body, **self._conversation()}
        if plan.runs_tools:
            body["stream"] = False
            body.pop("stream_options", None)
            body["tools"] = [*plan.other_tools, *(self._function(tool) for tool in plan.offered.values())]
            if "tool_choice" in body:
                body["tool_choice"] = self._tool_choice(body["tool_choice"])
            if is_last:
                body["tool_choice"] = _NO_TOOLS
            if not body["tools"]:
                for field in ("tools", "tool_choice", "parallel_tool_calls"):
                    body.pop(field, None)
        return msgspec.json.encode(body)

    def _tool_choice(self, choice: Any) -> Any:
        """Return the client's choice for the next model call. Raises `InvalidField`.

        A choice that requires a call applies to the first step only: in each further step, the model would have to call
        a tool again."""
        if self._has_steps:
            return choice if choice in ("auto", _NO_TOOLS) else "auto"
        if type(choice) is dict and choice.get("type") == "mcp" and choice.get("server_label") in self._plan.servers:
            function = self._plan.function_of(choice.get("server_label"), choice.get("name"))
            if function not in self._plan.offered:
                raise InvalidField("tool_choice.name", "Must be the name of a tool that the server offers.")
            return self._choice_of(function)
        return choice

    def calls(self, reply: dict[str, Any]) -> list[FunctionCall]:
        """Return the calls of a reply, if all of them are for the gateway. Otherwise the reply is the final answer, and
        the client runs its own functions."""
        all_calls = self._all_calls(reply)
        calls = [
            FunctionCall(call_id=call_id, tool=self._plan.offered[name], arguments=arguments)
            for name, call_id, arguments in all_calls
            if name in self._plan.offered
        ]
        return calls if len(calls) == len(all_calls) else []

    def add_usage(self, reply: dict[str, Any]) -> None:
        if type(usage := reply.get("usage")) is dict:
            self._usage = _sum(self._usage, usage)

    def extend(self, reply: dict[str, Any], outputs: Sequence[ToolOutput]) -> None:
        """Add a step to the conversation: the reply with the calls, and their results."""
        self._has_steps = True
        self._add_step(reply, outputs)

    @abstractmethod
    def _add_step(self, reply: dict[str, Any], outputs: Sequence[ToolOutput]) -> None: ...

    @abstractmethod
    def answer(self, reply: dict[str, Any]) -> dict[str, Any]:
        """Return the final answer for the client."""

    @abstractmethod
    def events(self, answer: dict[str, Any]) -> Sequence[bytes]:
        """Return the final answer as the events of a stream."""

    @abstractmethod
    def _conversation(self) -> dict[str, Any]: ...

    @abstractmethod
    def _function(self, tool: OfferedTool) -> dict[str, Any]: ...

    @abstractmethod
    def _choice_of(self, function: str) -> dict[str, Any]:
        """Return the `tool_choice` that requires a call of a function."""

    @abstractmethod
    def _all_calls(self, reply: dict[str, Any]) -> list[tuple[str, str, str]]:
        """Return the name, the id and the arguments of each call of a function."""


class ChatForm(RunForm):
    """Chat completions. The steps between the request and the final answer are not part of the answer."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        messages = plan.body.get("messages")
        self._messages: list[Any] = list(messages) if type(messages) is list else []

    def _add_step(self, reply: dict[str, Any], outputs: Sequence[ToolOutput]) -> None:
        self._messages.append(reply["choices"][0]["message"])
        self._messages += [
            {"role": "tool", "tool_call_id": output.call.call_id, "content": output.text} for output in outputs
        ]

    def answer(self, reply: dict[str, Any]) -> dict[str, Any]:
        answer = {**reply, **({"usage": self._usage} if self._usage else {})}
        for choice in answer.get("choices", []):
            message = choice.get("message", {})
            own = [call for call in _calls_of(message) if _name_of(call) not in self._plan.offered]
            if len(own) < len(_calls_of(message)):
                message["tool_calls"] = own
                if not own:
                    del message["tool_calls"]
                    choice["finish_reason"] = "stop"
        return answer

    def events(self, answer: dict[str, Any]) -> Sequence[bytes]:
        options = self._plan.body.get("stream_options")
        return chat_events(answer, has_usage=type(options) is dict and options.get("include_usage") is True)

    def _conversation(self) -> dict[str, Any]:
        return {"messages": self._messages}

    def _function(self, tool: OfferedTool) -> dict[str, Any]:
        return {"type": "function", "function": _definition(tool)}

    def _choice_of(self, function: str) -> dict[str, Any]:
        return {"type": "function", "function": {"name": function}}

    def _all_calls(self, reply: dict[str, Any]) -> list[tuple[str, str, str]]:
        choices = reply.get("choices")
        if type(choices) is not list or len(choices) != 1:
            return []
        calls = _calls_of(choices[0].get("message") or {})
        return [
            (_name_of(call), call["id"], _arguments(call["function"].get("arguments")))
            if call.get("type", "function") == "function"
            else ("", "", "")
            for call in calls
        ]


def _name_of(call: dict[str, Any]) -> str:
    """Return the name of the function that a call names, or an empty string if it is a call of another kind."""
    return (call.get("function") or {}).get("name") or ""


def _arguments(value: Any) -> str:
    """Return the arguments of a call as JSON. Some servers send an object or null instead of a text."""
    if type(value) is str:
        return value
    return "{}" if value is None else msgspec.json.encode(value).decode()


def _calls_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    return message.get("tool_calls") or []


class ResponsesForm(RunForm):
    """The Responses API. The answer has an item `mcp_list_tools` for each server and an item `mcp_call` for each call,
    as an answer of OpenAI has. In a later request of the client, these items become calls of functions again."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        sent = plan.body.get("input")
        if type(sent) is list:
            self._input = [item for original in sent for item in self._restored(original)]
        else:
            self._input = [{"role": "user", "content": sent}]
        self._output: list[dict[str, Any]] = []
        self._new_input: list[dict[str, Any]] = []

    def _add_step(self, reply: dict[str, Any], outputs: Sequence[ToolOutput]) -> None:
        by_id = {output.call.call_id: output for output in outputs}
        for item in reply["output"]:
            if (kept := _without_id(item)) is not None:
                self._new_input.append(kept)
            output = by_id.get(item.get("call_id", "")) if item.get("type") == "function_call" else None
            self._output.append(item if output is None else _call_item(output))
        self._new_input += [
            {"type": "function_call_output", "call_id": output.call.call_id, "output": output.text}
            for output in outputs
        ]

    def answer(self, reply: dict[str, Any]) -> dict[str, Any]:
        listed = [_list_item(server, self._plan.of_server(server)) for server in self._plan.servers]
        last = [
            item
            for item in reply.get("output", [])
            if item.get("type") != "function_call" or item.get("name") not in self._plan.offered
        ]
        answer = {**reply, "output": [*listed, *self._output, *last]}
        if self._usage:
            answer["usage"] = self._usage
        if "tools" in answer:
            answer["tools"] = self._plan.body["tools"]
        return answer

    def events(self, answer: dict[str, Any]) -> Sequence[bytes]:
        return response_events(answer)

    def _conversation(self) -> dict[str, Any]:
        return {"input": [*self._input, *self._new_input]}

    def _restored(self, item: Any) -> list[Any]:
        """Return an item of an earlier answer as the model knows it."""
        kind = item.get("type") if type(item) is dict else None
        if kind == "mcp_list_tools" and word(item.get("server_label")) in self._plan.registered:
            return []
        function = self._plan.function_of(item.get("server_label"), item.get("name")) if kind == "mcp_call" else None
        if function is None:
            return [item]
        call_id = item.get("id") or f"call_{uuid4().hex}"
        text = item.get("output") or item.get("error") or ""
        text = text if type(text) is str else msgspec.json.encode(text).decode()
        return [
            {"type": "function_call", "call_id": call_id, "name": function, "arguments": item.get("arguments") or "{}"},
            {"type": "function_call_output", "call_id": call_id, "output": text},
        ]

    def _function(self, tool: OfferedTool) -> dict[str, Any]:
        return {"type": "function", "strict": False, **_definition(tool)}

    def _choice_of(self, function: str) -> dict[str, Any]:
        return {"type": "function", "name": function}

    def _all_calls(self, reply: dict[str, Any]) -> list[tuple[str, str, str]]:
        calls = []
        for item in reply.get("output", []):
            if item.get("type") == "function_call":
                calls.append((item["name"], item["call_id"], _arguments(item.get("arguments"))))
            elif item.get("type") in _CLIENT_CALLS:
                calls.append(("", "", ""))
        return calls


def _without_id(item: dict[str, Any]) -> dict[str, Any] | None:
    """Return an item of a reply for the next request, without a reference to what the provider has stored. None for an
    item that cannot be sent: reasoning without its encrypted content, and a tool that the provider has run."""
    kind = item.get("type")
    if kind not in {"message", "function_call", "reasoning"} or (
        kind == "reasoning" and "encrypted_content" not in item
    ):
        return None
    return {key: value for key, value in item.items() if key not in {"id", "status"}}


def _definition(tool: OfferedTool) -> dict[str, Any]:
    schema = tool.definition.get("inputSchema") or {"type": "object", "properties": {}}
    return {"name": tool.function, "description": tool.definition.get("description", ""), "parameters": schema}


def _list_item(server: str, tools: list[OfferedTool]) -> dict[str, Any]:
    return {
        "id": f"mcpl_{uuid4().hex}",
        "type": "mcp_list_tools",
        "server_label": server,
        "tools": [
            {
                "name": tool.name,
                "description": tool.definition.get("description"),
                "input_schema": tool.definition.get("inputSchema") or {"type": "object"},
                "annotations": tool.definition.get("annotations"),
            }
            for tool in tools
        ],
    }


def _call_item(output: ToolOutput) -> dict[str, Any]:
    return {
        "id": f"mcp_{uuid4().hex}",
        "type": "mcp_call",
        "server_label": output.call.tool.server.record.name,
        "name": output.call.tool.name,
        "arguments": output.call.arguments,
        "output": None if output.failed else output.text,
        "error": _error(output.text) if output.failed else None,
        "status": "failed" if output.failed else "completed",
        "approval_request_id": None,
    }


def _error(text: str) -> dict[str, Any]:
    return {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": text}]}


def _sum(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return the sums of the numbers in two objects."""
    result = dict(first)
    for key, value in second.items():
        earlier = first.get(key)
        if type(value) is dict:
            result[key] = _sum(earlier if type(earlier) is dict else {}, value)
        elif type(value) in {int, float} and type(earlier) in {int, float}:
            result[key] = earlier + value
        elif value is not None or key not in result:
            result[key] = value
    return result


#: the forms by dialect
FORMS: Final[dict[str, type[RunForm]]] = {"openai_chat": ChatForm, "openai_responses": ResponsesForm}
