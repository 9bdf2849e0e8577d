"""The clients. For each way to call the gateway, the sections of the client's page that are run."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

#: Name of a file in the folder in which the examples are run.
ORDER_FILE: Final = "order.txt"
_READ: Final = {"command": f"cat {ORDER_FILE}", "description": "Print a file"}
CHAT: Final = "chat completions"
RESPONSES: Final = "responses"
MESSAGES: Final = "messages"


class Case(NamedTuple):
    """The sections of a page that are run one after the other. `has_tool` is false for calls without tools."""

    api: str
    is_streamed: bool
    sections: tuple[str, ...]
    has_tool: bool = True


class Client(NamedTuple):
    """A client with a page of the same name. The scripted model calls `tool` with `arguments`.

    The version of `package` is recorded. `setup_scripts` are scripts in the package's folder that fetch its program
    during the installation. `answer` replaces the model's last answer. `written_file` is the file that the client
    writes after this answer.
    """

    name: str
    package: str
    cases: tuple[Case, ...]
    tool: str = "read_order"
    arguments: Mapping[str, Any] = {"number": 7}
    setup_scripts: tuple[str, ...] = ()
    answer: str | None = None
    written_file: str | None = None


def _both(api: str, *sections: str, plain: str = "Run", streamed: str = "Stream", has_tool: bool = True) -> list[Case]:
    """Return a case without streaming and one with streaming."""
    return [
        Case(api, False, (*sections, plain), has_tool),
        Case(api, True, (*sections, streamed), has_tool),
    ]


CLIENTS: Final[Mapping[str, Client]] = {
    client.name: client
    for client in (
        Client(
            "claude-code", "@anthropic-ai/claude-code",
            (Case(MESSAGES, True, ("Connect", "Run")), Case(MESSAGES, True, ("Settings file", "Run"))),
            "Bash", _READ, ("install.cjs",),
        ),
        Client(
            "codex", "@openai/codex", (Case(RESPONSES, True, ("Connect", "Run")),),
            "exec_command", {"cmd": f"cat {ORDER_FILE}"},
        ),
        Client(
            "opencode", "opencode-ai",
            (Case(CHAT, True, ("Connect", "Run")), Case(MESSAGES, True, ("Connect", "Run over messages"))),
            "bash", _READ, ("postinstall.mjs",),
        ),
        Client(
            "aider", "aider-chat", tuple(_both(CHAT, "Connect", has_tool=False)),
            answer="Done. The card is 4111 1111 1111 1111.\n\nhello.py\n```python\nprint(\"Hello\")\n```\n",
            written_file="hello.py",
        ),
        Client(
            "cline", "cline", (Case(CHAT, True, ("Connect", "Run")),),
            "run_commands", {"commands": [f"cat {ORDER_FILE}"]},
        ),
        Client(
            "continue", "@continuedev/cli", (Case(CHAT, True, ("Connect", "Run")),),
            "Bash", {"command": f"cat {ORDER_FILE}"},
        ),
        Client("curl", "curl", (
            *_both(CHAT, "Connect", plain="Chat completions", streamed="Chat completions, streamed", has_tool=False),
            *_both(RESPONSES, "Connect", plain="Responses", streamed="Responses, streamed", has_tool=False),
            *_both(MESSAGES, "Connect", plain="Messages", streamed="Messages, streamed", has_tool=False),
        )),
        Client("openai-python", "openai", (
            *_both(CHAT, "Connect", plain="Chat completions", streamed="Chat completions, streamed"),
            *_both(RESPONSES, "Connect", plain="Responses", streamed="Responses, streamed"),
        )),
        Client("openai-node", "openai", (
            *_both(CHAT, "Connect", plain="Chat completions", streamed="Chat completions, streamed"),
            *_both(RESPONSES, "Connect", plain="Responses", streamed="Responses, streamed"),
        )),
        Client("anthropic-python", "anthropic", tuple(_both(MESSAGES, "Connect"))),
        Client("anthropic-node", "@anthropic-ai/sdk", tuple(_both(MESSAGES, "Connect"))),
        Client("vercel-ai-sdk", "ai", (
            *_both(CHAT, "Connect", "Chat completions"),
            *_both(RESPONSES, "Connect", "Responses"),
            *_both(MESSAGES, "Connect", "Messages"),
        )),
        Client("langchain", "langchain", (
            *_both(CHAT, "Connect", "Chat completions"),
            *_both(RESPONSES, "Connect", "Responses"),
            *_both(MESSAGES, "Connect", "Messages"),
        )),
        Client("llamaindex", "llama-index-llms-openai-like", (
            *_both(CHAT, "Connect"),
            *_both(CHAT, "Connect", "Connect with the class OpenAI"),
        )),
        Client("pydantic-ai", "pydantic-ai-slim", (
            *_both(CHAT, "Connect", "Chat completions"),
            *_both(RESPONSES, "Connect", "Responses"),
            *_both(MESSAGES, "Connect", "Messages"),
        )),
        Client("openai-agents", "openai-agents", (
            *_both(RESPONSES, "Connect", "Responses"),
            *_both(CHAT, "Connect", "Chat completions"),
        )),
        Client("litellm", "litellm", tuple(_both(CHAT, "Connect"))),
        Client(
            "instructor", "instructor", tuple(_both(CHAT, "Connect")),
            "Order", {"number": 7, "card": "4111 1111 1111 1111"},
        ),
        Client("llm", "llm", tuple(_both(CHAT, "Connect"))),
        Client("dspy", "dspy", (Case(CHAT, False, ("Connect", "Run"), has_tool=False),)),
    )
}  # fmt: skip
