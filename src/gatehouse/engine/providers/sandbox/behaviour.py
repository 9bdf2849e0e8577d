"""The behaviour of a sandbox model, parsed from its name."""

import re
from typing import Final

import msgspec

#: Names in the list of models; other numbers in these names are valid, too.
LISTED_MODELS: Final = (
    "echo",
    "slow-200ms",
    "status-503",
    "tokens-1000-200",
    "stream-50",
    "tools",
    "cut",
    "garbage",
    "embed",
    "moderation",
    "rerank",
    "image",
    "transcription",
    "speech",
)

#: Models of operations that are not streamed.
WITHOUT_STREAMS: Final = frozenset({"embed", "moderation", "rerank", "image", "transcription", "speech"})

MAX_DELAY_MS = 600_000
MAX_CHUNKS = 99_999
MAX_TOKENS = 1_000_000_000


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    status: int = 200
    delay_seconds: float = 0.0
    #: reported usage instead of the counted one: input, output
    tokens: tuple[int, int] | None = None
    chunks: int | None = None
    cut: bool = False
    garbage: bool = False
    tools: bool = False


_FIXED_BEHAVIOURS = {
    "echo": Behaviour(),
    "embed": Behaviour(),
    "moderation": Behaviour(),
    "rerank": Behaviour(),
    "image": Behaviour(),
    "transcription": Behaviour(),
    "speech": Behaviour(),
    "cut": Behaviour(cut=True),
    "garbage": Behaviour(garbage=True),
    "tools": Behaviour(tools=True),
}
_NUMBERED = re.compile(
    r"slow-(?P<ms>\d{1,6})ms|status-(?P<code>[2-5]\d\d)|stream-(?P<n>\d{1,5})|tokens-(?P<i>\d{1,10})-(?P<o>\d{1,10})"
)


def of_model(name: str) -> Behaviour | None:
    """Return the behaviour; None if the name is not valid. A leading `sandbox/` is ignored."""
    name = name.removeprefix("sandbox/")
    behaviour = _FIXED_BEHAVIOURS.get(name)
    if behaviour is not None:
        return behaviour
    match = _NUMBERED.fullmatch(name)
    if match is None:
        return None
    if match["ms"]:
        return Behaviour(delay_seconds=min(int(match["ms"]), MAX_DELAY_MS) / 1000)
    if match["code"]:
        return Behaviour(status=int(match["code"]))
    if match["n"]:
        return Behaviour(chunks=min(int(match["n"]), MAX_CHUNKS))
    return Behaviour(tokens=(min(int(match["i"]), MAX_TOKENS), min(int(match["o"]), MAX_TOKENS)))
