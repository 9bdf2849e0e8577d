"""Generates requests of the clients' dialects in which each text and each number is unique."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[Any]], Any]
Body = dict[str, Any]


class Sentinels:
    """Makes unique values, and draws which parts a request has."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._count = 0

    def text(self) -> str:
        self._count += 1
        return f"Snt{self._count:04}x"

    def integer(self) -> int:
        self._count += 1
        return 70_000_000 + self._count

    def fraction(self) -> float:
        self._count += 1
        return round(0.5 + self._count * 1e-6, 6)

    def some(self, **values: Callable[[], Any]) -> Body:
        """Return an object with some of these members."""
        names = self._draw(st.lists(st.sampled_from(sorted(values)), unique=True, max_size=4))
        return {name: values[name]() for name in names}

    def parts(self, *makers: Callable[[], Body], at_least: int = 1) -> list[Body]:
        chosen = self._draw(st.lists(st.sampled_from(makers), min_size=at_least, max_size=3, unique=True))
        return [make() for make in chosen]

    def one(self, *makers: Callable[[], Any]) -> Any:
        return self._draw(st.sampled_from(makers))()

    def schema(self) -> Body:
        return {"type": "object", "properties": {self.text(): {"type": "string", "description": self.text()}}}

    def picture_url(self) -> str:
        return f"data:image/png;base64,{self.text()}"

    def web_url(self) -> str:
        return f"https://{self.text().lower()}.example/{self.text()}.png"


def chat(draw: Draw) -> Body:
    s = Sentinels(draw)
    name = s.text()
    function = {"name": name, "parameters": s.schema(), **s.some(description=s.text, hint=s.text)}
    tool = {"type": "function", "function": function, **s.some(mark=s.text)}

    def user() -> Body:
        parts = s.parts(
            lambda: {"type": "text", "text": s.text(), **s.some(cache_control=lambda: {"type": s.text()})},
            lambda: {"type": "image_url", "image_url": {"url": s.picture_url(), **s.some(detail=s.text, hint=s.text)}},
            lambda: {"type": "image_url", "image_url": {"url": s.web_url()}},
            lambda: {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{s.text()}",
                                              **s.some(filename=s.text)}},
        )  # fmt: skip
        return {"role": "user", "content": s.one(s.text, lambda: parts), **s.some(name=s.text)}

    def answer() -> Body:
        return {"role": "assistant", "content": s.text(), **s.some(
            refusal=s.text, reasoning_content=s.text, audio=lambda: {"id": s.text()},
            annotations=lambda: [{"type": "url_citation", "url": s.text()}],
        )}  # fmt: skip

    def called() -> list[Body]:
        call = {"id": "c1", "type": "function",
                "function": {"name": name, "arguments": f'{{"a":"{s.text()}"}}', **s.some(hint=s.text)},
                **s.some(hint=s.text, extra_content=lambda: {"google": {"thought_signature": s.text()}})}  # fmt: skip
        result = s.one(s.text, lambda: [{"type": "text", "text": s.text()}, {"type": "text", "text": s.text()}])
        return [{"role": "assistant", "content": s.one(lambda: None, s.text), "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": result}]  # fmt: skip

    turns = s.one(list, lambda: [answer()], called)
    return {
        "model": "p/m", "messages": [{"role": "system", "content": s.text()}, user(), *turns, user()],
        "tools": [tool], "max_tokens": s.integer(),
        **s.some(
            user=s.text, prompt_cache_key=s.text, safety_identifier=s.text, verbosity=s.text, service_tier=s.text,
            prompt_cache_retention=s.text, reasoning_effort=s.text, x_hint=s.text, seed=s.integer, top_k=s.integer,
            temperature=s.fraction, top_p=s.fraction, frequency_penalty=s.fraction, presence_penalty=s.fraction,
            stop=lambda: [s.text()], metadata=lambda: {s.text(): s.text()}, logit_bias=lambda: {s.text(): 1},
            prediction=lambda: {"type": "content", "content": s.text()}, audio=lambda: {"voice": s.text()},
            modalities=lambda: [s.text()], moderation=lambda: {"model": s.text()},
            web_search_options=lambda: {"search_context_size": s.text()},
            chat_template_kwargs=lambda: {"a": s.text()},
            tool_choice=lambda: {"type": "function", "function": {"name": name}},
            response_format=lambda: {"type": "json_schema", "json_schema": {
                "name": s.text(), "schema": s.schema(), **s.some(description=s.text, hint=s.text)}},
        ),
    }  # fmt: skip


def responses(draw: Draw) -> Body:
    s = Sentinels(draw)
    name, custom = s.text(), s.text()

    def custom_tool() -> Body:
        grammar = {"type": "grammar", "syntax": "lark", "definition": s.text()}
        return {"type": "custom", "name": custom, "format": grammar, **s.some(description=s.text, hint=s.text)}

    tools = [
        {"type": "function", "name": name, "parameters": s.schema(),
         **s.some(description=s.text, output_schema=s.schema)},
        *s.parts(
            custom_tool,
            lambda: {"type": "namespace", "name": s.text(), "description": s.text(),
                     "tools": [{"type": "function", "name": s.text(), "parameters": s.schema()}]},
            lambda: {"type": "web_search", "user_location": {"city": s.text()}},
            at_least=0,
        ),
    ]  # fmt: skip

    def parts() -> list[Body]:
        return s.parts(
            lambda: {"type": "input_text", "text": s.text(), **s.some(prompt_cache_breakpoint=lambda: {"m": s.text()})},
            lambda: {"type": "input_image", "image_url": s.picture_url(), **s.some(detail=s.text, hint=s.text)},
            lambda: {"type": "input_image", "image_url": s.web_url()},
            lambda: {"type": "input_file", "file_data": f"data:application/pdf;base64,{s.text()}",
                     **s.some(filename=s.text, hint=s.text)},
            lambda: {"type": "input_file", "file_url": s.web_url()},
        )  # fmt: skip

    def user() -> Body:
        return {"role": "user", "content": s.one(s.text, parts), **s.some(phase=s.text)}

    def answer() -> list[Body]:
        text = {"type": "output_text", "text": s.text(), **s.some(annotations=lambda: [{"url": s.text()}])}
        return [*s.parts(
            lambda: {"type": "reasoning", "id": "rs_1", "encrypted_content": s.text(),
                     "summary": [{"type": "summary_text", "text": s.text()}]},
            lambda: {"type": "reasoning", "id": "rs_2", "encrypted_content": f"GatehouseClaudeSignature{s.text()}",
                     "summary": [{"type": "summary_text", "text": s.text()}]},
            lambda: {"type": "web_search_call", "id": "ws_1", "action": {"query": s.text()}},
            at_least=0,
        ), {"role": "assistant", "content": [text]}]  # fmt: skip

    def called() -> list[Body]:
        output = s.one(s.text, lambda: [{"type": "input_text", "text": s.text()}])
        if s.one(lambda: True, lambda: False):
            if all(tool["name"] != custom for tool in tools if "name" in tool):
                tools.append(custom_tool())
            return [
                {"type": "custom_tool_call", "call_id": "c1", "name": custom, "input": s.text()},
                {"type": "custom_tool_call_output", "call_id": "c1", "output": output},
            ]
        call = {"type": "function_call", "call_id": "c1", "name": name, "arguments": f'{{"a":"{s.text()}"}}'}
        call |= s.some(caller=lambda: {"type": s.text()})
        return [call, {"type": "function_call_output", "call_id": "c1", "output": output}]

    added = {"type": "additional_tools", "tools": [{"type": "function", "name": s.text(), "parameters": s.schema()}]}
    turns = s.one(list, answer, called, lambda: [added])
    return {
        "model": "p/m", "input": [user(), *turns, user()], "tools": tools, "max_output_tokens": s.integer(),
        "instructions": s.text(),
        **s.some(
            user=s.text, prompt_cache_key=s.text, safety_identifier=s.text, service_tier=s.text, x_hint=s.text,
            temperature=s.fraction, top_p=s.fraction, max_tool_calls=s.integer, include=lambda: [s.text()],
            metadata=lambda: {s.text(): s.text()}, client_metadata=lambda: {s.text(): s.text()},
            context_management=lambda: [{"type": s.text()}],
            tool_choice=lambda: {"type": "function", "name": name},
            reasoning=lambda: {"effort": s.text(), **s.some(mode=s.text)},
            text=lambda: {**s.some(verbosity=s.text), "format": {
                "type": "json_schema", "name": s.text(), "schema": s.schema(), **s.some(description=s.text, hint=s.text)
            }},
        ),
    }  # fmt: skip


def messages(draw: Draw) -> Body:
    s = Sentinels(draw)
    name = s.text()
    cached = {"cache_control": lambda: {"type": "ephemeral", "ttl": s.text()}}

    def text() -> Body:
        return {"type": "text", "text": s.text(), **s.some(**cached)}

    def image() -> Body:
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": s.text()}}

    def document() -> Body:
        source = s.one(
            lambda: {"type": "base64", "media_type": "application/pdf", "data": s.text()},
            lambda: {"type": "text", "media_type": "text/plain", "data": s.text()},
            lambda: {"type": "content", "content": s.parts(text, image)},
            lambda: {"type": "content", "content": s.text()},
        )
        options = s.some(title=s.text, context=s.text, citations=lambda: {"enabled": True, "mode": s.text()})
        return {"type": "document", "source": source, **options}

    def search_result() -> Body:
        return {"type": "search_result", "source": s.web_url(), "title": s.text(), "content": [text(), text()],
                **s.some(citations=lambda: {"enabled": True, "mode": s.text()})}  # fmt: skip

    def reference() -> Body:
        return {"type": "tool_reference", "tool_name": s.text()}

    def web_image() -> Body:
        return {"type": "image", "source": {"type": "url", "url": s.web_url()}}

    def user() -> Body:
        return {
            "role": "user",
            "content": s.one(s.text, lambda: s.parts(text, image, web_image, document, search_result)),
        }

    def thinking() -> Body:
        return {"type": "thinking", "thinking": s.text(), "signature": s.text()}

    def answer() -> list[Body]:
        return [{"role": "assistant", "content": [*s.parts(thinking, lambda: {
            "type": "redacted_thinking", "data": s.text()}, at_least=0), text()]}]  # fmt: skip

    def called() -> list[Body]:
        search = {"type": "server_tool_use", "id": "s1", "name": "tool_search_tool_bm25", "input": {"query": s.text()}}
        results = {
            "type": "tool_search_tool_result",
            "tool_use_id": "s1",
            "content": {"tool_references": [reference()]},
        }
        call = {"type": "tool_use", "id": "t1", "name": name, "input": {"a": s.text()}, **s.some(caller=s.text)}
        content = s.one(s.text, lambda: s.parts(text, image, search_result, reference, document))
        result = {"type": "tool_result", "tool_use_id": "t1", "content": content}
        before = s.one(list, lambda: [search, results], lambda: [thinking()])
        return [{"role": "assistant", "content": [*before, call]}, {"role": "user", "content": [result]}]

    def summarized() -> list[Body]:
        return [{"role": "assistant", "content": [{"type": "compaction", "content": s.text()}, text()]}, user()]

    conversation = s.one(
        lambda: [user()], lambda: [user(), *answer(), user()], lambda: [user(), *called()], summarized
    )  # fmt: skip
    tools: list[Body] = [{
        "name": name, "input_schema": s.schema(),
        **s.some(description=s.text, input_examples=lambda: [{"a": s.text()}], **cached),
    }]  # fmt: skip
    tools += s.one(list, lambda: [{"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}])
    return {
        "model": "p/m", "messages": conversation, "tools": tools, "max_tokens": s.integer(),
        **s.some(
            system=lambda: s.one(s.text, lambda: [text(), text()]), service_tier=s.text, x_hint=s.text,
            metadata=lambda: {"user_id": s.text(), **s.some(other=s.text)}, stop_sequences=lambda: [s.text()],
            temperature=s.fraction, top_p=s.fraction, top_k=s.integer,
            thinking=lambda: {"type": "enabled", "budget_tokens": s.integer(), **s.some(hint=s.text)},
            output_config=lambda: s.some(
                effort=s.text, task_budget=lambda: {"total": s.integer()},
                format=lambda: {"type": "json_schema", "schema": s.schema()},
            ),
            context_management=lambda: {"edits": [{"type": s.text()}]},
            mcp_servers=lambda: [{"type": "url", "url": s.web_url(), "name": s.text()}],
            tool_choice=lambda: {"type": "tool", "name": name},
        ),
    }  # fmt: skip


REQUESTS: dict[str, Callable[[Draw], Body]] = {
    "openai_chat": chat, "openai_responses": responses, "anthropic_messages": messages,
}  # fmt: skip
