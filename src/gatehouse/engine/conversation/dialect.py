"""What a dialect can do. The dialects themselves are in `dialects/`, one folder each."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.form import Delta
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.conversation.view import EventView, Growth
from gatehouse.foundation.errors import Refusal

NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class Tap(Protocol):
    """Looks at a stream that passes as it is. One for each stream."""

    #: as known so far
    usage: Usage | None
    #: whether the dialect's own end of a stream was seen
    finished: bool
    #: the message with which the provider broke its stream off, else None
    fault: str | None

    def take(self, block: bytes) -> bytes:
        """Whole events in, what the client shall see out: the same bytes, with the model's name that the client asked
        for, less what only the gateway asked for."""

    def complete(self) -> bool:
        """At the stream's end: whether it was all there."""


class StreamReader(Protocol):
    """A provider's events to deltas. One for each stream."""

    def read(self, event: bytes) -> Sequence[Delta]:
        """Raises `NotConvertible`."""


class StreamWriter(Protocol):
    """Deltas to a client's events. One for each stream."""

    def write(self, delta: Delta) -> bytes: ...


class ProviderDialect(Protocol):
    """A dialect as far as providers speak it. What an operation asks and answers is in `form`: `Request` and
    `Completion` for a chat, `EmbeddingsRequest` and `Embeddings` for embeddings."""

    @property
    def name(self) -> str: ...

    def from_internal(self, request: Any) -> dict[str, Any]:
        """The body for a provider. Raises `InvalidField` for what this dialect cannot say."""

    def parse_reply(self, body: bytes) -> Any:
        """Raises `NotConvertible`."""

    def stream_reader(self) -> StreamReader: ...


class Dialect(Protocol):
    """A dialect as far as clients speak it."""

    @property
    def name(self) -> str: ...

    @property
    def operation(self) -> Literal["chat", "embeddings"]: ...

    def decode(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ModelCall:
        """A client's body, and its headers with lower-case names. Raises a leaf of `BadRequest` that names the
        field."""

    def instruct(self, body: dict[str, Any], text: str) -> None:
        """Puts a text before a decoded body's system prompt. Nothing where an operation has none."""

    def to_internal(self, call: ModelCall) -> Any:
        """Raises `InvalidField` for what cannot be understood."""

    def render_reply(self, answer: Any, call: ModelCall) -> bytes:
        """The answer to the client that made `call`."""

    def stream_writer(self, call: ModelCall) -> StreamWriter: ...

    def view(self, event: bytes) -> EventView | None:
        """The texts of one of the client's events. None for an event without texts that ends none. Raises
        `Unreadable`."""

    def growth(self, event: bytes) -> Growth | None:
        """What `view` says of an event with the next piece of one text and nothing else, as far as that can be told
        without reading the event for all that it could hold: None says nothing."""

    def render_error(self, error: Refusal) -> bytes:
        """The body of an error answer."""

    def render_stream_error(self, error: Refusal) -> bytes:
        """The event that ends a stream which broke."""


class PassingDialect(Dialect, ProviderDialect, Protocol):
    """One that both speak: where both sides do, everything passes as it is."""

    def forward(self, call: ModelCall, model: str) -> tuple[dict[str, Any], Tap]:
        """The body for the provider, and what watches the stream that may come of it."""

    def check_reply(self, body: bytes) -> Usage | None:
        """The usage in a whole answer. Raises `NotConvertible` when it is no answer in this dialect."""
