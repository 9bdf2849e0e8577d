"""The interfaces of dialects. The dialects are in `dialects/`, one folder each."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Protocol

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.form import Delta, Reasoning
from gatehouse.engine.conversation.operations import Operation
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.conversation.view import EventView, Growth
from gatehouse.foundation.errors import Refusal

NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
#: what `PassingDialect.forward` leaves out of most calls
NOTHING_LOST: Final[Mapping[str, None]] = MappingProxyType({})


class Tap(Protocol):
    """Observes a stream that is passed through. One for each stream."""

    #: the usage so far
    usage: Usage | None
    #: whether the event that ends a stream in this dialect was seen
    finished: bool
    #: the message of the error with which the provider ended the stream, or None
    fault: str | None

    def take(self, block: bytes) -> bytes:
        """Convert a block of whole events for the client: the model gets the name that the client requested, and events
        that the client did not request (such as the usage) are removed. A block with an error is cut before the
        error, which is then in `fault`."""

    def complete(self) -> bool:
        """Return, at the end of the stream, whether it was complete."""


class StreamReader(Protocol):
    """Converts a provider's events to deltas. One for each stream."""

    def read(self, event: bytes) -> Sequence[Delta]:
        """Return the deltas of an event. Raises `NotConvertible`."""


class StreamWriter(Protocol):
    """Converts deltas to a client's events. One for each stream."""

    def write(self, delta: Delta) -> bytes: ...


class ProviderDialect(Protocol):
    """The provider side of a dialect. `form` has the types of requests and answers: `Request` and `Completion` for a
    chat, `EmbeddingsRequest` and `Embeddings` for embeddings."""

    @property
    def name(self) -> str: ...

    def from_internal(self, request: Any) -> dict[str, Any]:
        """Return the body for a provider. Raises `InvalidField` for content that this dialect cannot express."""

    def unwritten(self, request: Any) -> frozenset[str]:
        """Return the names of the features (`conversion.lost.features`) that `from_internal` leaves out of the body."""

    @property
    def extra_fields(self) -> frozenset[str]:
        """Return the names of the extensions (`Request.extra`) that are sent."""

    def parse_reply(self, body: bytes) -> Any:
        """Return a provider's answer in the internal form. Raises `NotConvertible`."""

    def stream_reader(self) -> StreamReader: ...


class Dialect(Protocol):
    """The client side of a dialect."""

    @property
    def name(self) -> str: ...

    @property
    def operation(self) -> Operation: ...

    def decode(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ModelCall:
        """Return the model call of a client's body and headers (names in lower case). Raises a subclass of `BadRequest`
        that identifies the field."""

    def prepend_instructions(self, body: dict[str, Any], text: str) -> None:
        """Puts a text before the system prompt of a decoded body. Does nothing for operations that have no system
        prompt. Raises `InvalidField` if the client asked for an answer that repeats the prompt (`echo`), because it
        would show the text."""

    @property
    def feature_fields(self) -> Mapping[str, str]:
        """Return the names of the fields that express features, where they differ from the features' names."""

    def refuse_unconvertible(self, call: ModelCall) -> None:
        """Raises `InvalidField` for a call that is valid in this dialect, but that no other dialect can express."""

    def to_internal(self, call: ModelCall) -> Any:
        """Return the request in the internal form. Raises `InvalidField` for unsupported content."""

    def render_reply(self, answer: Any, call: ModelCall) -> bytes:
        """Return the body for the client that made `call`."""

    def hides(self, reasoning: Reasoning, call: ModelCall) -> bool:
        """Return whether the answer to `call` leaves out this reasoning."""

    def stream_writer(self, call: ModelCall) -> StreamWriter: ...

    def view(self, event: bytes) -> EventView | None:
        """Return the texts of an event for the client. None: the event contains no text and ends none. Raises
        `Unreadable`."""

    def growth(self, event: bytes) -> Growth | None:
        """If the event contains only the next piece of one text, return its channel and this piece, else None. This
        is faster than `view`, because the event is not fully decoded. If the result is None, use `view`."""

    def render_error(self, error: Refusal) -> bytes:
        """Return the body of an error."""

    def render_stream_error(self, error: Refusal) -> bytes:
        """Return the event that ends a stream with an error."""


class PassingDialect(Dialect, ProviderDialect, Protocol):
    """A dialect of both clients and providers. Between the two, requests and answers are passed through."""

    def forward(self, call: ModelCall, model: str, provider: str = "") -> tuple[dict[str, Any], Mapping[str, None]]:
        """Return the body for a model of a provider, and the names of the client's fields that it leaves out. Raises
        `InvalidField` for content that only another provider can read."""

    def tap(self, call: ModelCall, model: str, provider: str = "") -> Tap:
        """Return the tap for the stream that answers a call."""

    def check_reply(self, body: bytes) -> Usage | None:
        """Return the usage of a complete answer. Raises `NotConvertible` if it is not an answer in this dialect."""
