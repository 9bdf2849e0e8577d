"""References in an input to items of earlier answers, which the gateway does not store. They are left out or
refused."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatehouse.engine.conversation.decoding.optional_fields import word
from gatehouse.engine.conversation.errors import InvalidField

CALLS: Final = frozenset({"function_call", "custom_tool_call"})
#: prefixes of the ids of items with reasoning, and of messages
_REASONING_ID: Final = "rs_"
_MESSAGE_ID: Final = "msg_"
#: the name of a reference that was left out, in the header `X-Gateway-Dropped`
LOST: Final = "input.item_reference"


def kind_of(item: Mapping[str, Any]) -> str | None:
    """Return the type of an item, or None for a type that is no string. Messages and references may omit it."""
    kind = item.get("type")
    if kind is None or kind == "":
        return "item_reference" if item.keys() <= {"id", "type"} else "message"
    return word(kind)


class References:
    """The references in one input."""

    __slots__ = ("_ids", "_items")

    def __init__(self, items: Sequence[Mapping[str, Any]]) -> None:
        self._items = items
        #: the ids of all items; collected at the first reference
        self._ids: set[str] | None = None

    def leave_out(self, index: int, lost: dict[str, None]) -> None:
        """Leave out a reference. Its name is added to `lost`, unless the same input contains the item. Raises
        `InvalidField` if the conversation would have another meaning without the item.

        Reasoning can be left out, because other providers cannot use it. A text before a tool call can be left out,
        because it only announces the call. Any other reference is to an answer that the conversation needs."""
        path = f"input[{index}]"
        reference = self._items[index].get("id")
        if not isinstance(reference, str):
            raise InvalidField(f"{path}.id", f"`{path}.id` must be a string.")
        if self._ids is None:
            self._ids = {
                item["id"]
                for item in self._items
                if kind_of(item) != "item_reference" and isinstance(item.get("id"), str)
            }
        if reference in self._ids:
            return
        following = self._items[index + 1] if index + 1 < len(self._items) else {}
        is_announcement = reference.startswith(_MESSAGE_ID) and word(following.get("type")) in CALLS
        if not (is_announcement or reference.startswith(_REASONING_ID)):
            raise InvalidField(
                f"{path}.id",
                f"`{path}.id` refers to an item that is not in `input`. The gateway stores no items: send the item"
                " itself (Vercel's SDK does with the provider option `store: false`).",
            )
        lost[LOST] = None
