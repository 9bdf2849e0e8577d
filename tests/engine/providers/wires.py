"""Answers in the wire formats of providers, and functions that make a server send them."""

from tests.support.upstream import Connection

from gatehouse.engine.conversation.sse import frame
from gatehouse.engine.conversation.usage import Usage

CHAT = ["openai_chat", "anthropic_messages"]
OPENAI_REPLY = (
    b'{"id":"x","created":1,"model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"Hi \xc3\xa4"},'
    b'"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":4},"x_new": 1}'
)
ANTHROPIC_REPLY = (
    b'{"id":"x","type":"message","model":"m-1","content":[{"type":"text","text":"Hi \xc3\xa4"}],'
    b'"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":4},"x_new": 1}'
)
OPENAI_EVENTS = [
    b": ping\n\n",
    frame(b'{"id":"x","created":1,"model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}'),
    frame(b'{"id":"x","created":1,"model":"m-1","choices":[{"index":0,"delta":{"content":"Hi \xc3\xa4"}}]}'),
    frame(b'{"id":"x","created":1,"model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'),
    frame(b'{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}'),
    frame(b"[DONE]"),
]
ANTHROPIC_EVENTS = [
    frame(b'{"type":"message_start","message":{"id":"x","model":"m-1","usage":{"input_tokens":9}}}', "message_start"),
    frame(b'{"type":"ping"}', "ping"),
    frame(b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}', "content_block_start"),
    frame(
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi \xc3\xa4"}}',
        "content_block_delta",
    ),
    frame(b'{"type":"content_block_stop","index":0}', "content_block_stop"),
    frame(b'{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}', "message_delta"),
    frame(b'{"type":"message_stop"}', "message_stop"),
]
WIRES = {
    "openai": ("openai_chat", OPENAI_REPLY, OPENAI_EVENTS),
    "openai_compatible": ("openai_chat", OPENAI_REPLY, OPENAI_EVENTS),
    "ollama": ("openai_chat", OPENAI_REPLY, OPENAI_EVENTS),
    "byoe": ("openai_chat", OPENAI_REPLY, OPENAI_EVENTS),
    "anthropic": ("anthropic_messages", ANTHROPIC_REPLY, ANTHROPIC_EVENTS),
}
USAGE = Usage(input_tokens=9, output_tokens=4)


def config(kind: str, url: str) -> dict[str, str]:
    named = {"ollama": {"local_runtime_base_url": url}, "anthropic": {"base_url": url}}
    return named.get(kind, {"base_url": url + "/v1"})


def streaming(events: list[bytes]):
    async def behave(connection: Connection) -> None:
        await connection.begin_stream()
        for event in events:
            await connection.chunk(event)
        await connection.end_stream()

    return behave


def answering(body: bytes, status: int = 200, more: str = ""):
    async def behave(connection: Connection) -> None:
        await connection.answer(body, status=status, more=more)

    return behave
