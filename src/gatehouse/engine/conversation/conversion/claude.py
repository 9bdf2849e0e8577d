"""Determines what a Claude model accepts, from the model's name.

Anthropic describes this in its migration guides, the pages on thinking and effort, and the page on tool choice.
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple

#: a Claude model with its version: `claude-sonnet-4-5-20250929`, `claude-opus-4.6`, `claude-opus-5`
_FAMILY_FIRST: Final = re.compile(
    r"claude-(?P<family>[a-z]+)-(?P<major>\d{1,2})(?:[-.](?P<minor>\d{1,2}))?(?!\d)", re.IGNORECASE
)
#: an older name, or one of an aggregator: `claude-3-7-sonnet-latest`, `claude-3.7-sonnet`
_VERSION_FIRST: Final = re.compile(
    r"claude-(?P<major>\d{1,2})(?:[-.](?P<minor>\d{1,2}))?(?!\d)(?:-(?P<family>[a-z]+))?", re.IGNORECASE
)
#: a model whose name has no version; it is older than version 5
_MYTHOS_PREVIEW: Final = re.compile(r"claude-mythos-preview", re.IGNORECASE)
_MAX_CACHED_NAMES: Final = 1024

_FIRST_BUDGET: Final = (3, 7)
_FIRST_LEVELS: Final = (4, 6)
_FIRST_XHIGH: Final = (4, 7)
_FIRST_OMITTING: Final = (4, 7)
_FIRST_WITHOUT_SAMPLING: Final = (4, 7)
_FIRST_THINKING_IN_FORCED_CALLS: Final = (4, 8)
_FIRST_THINKING_BY_DEFAULT: Final = (5, 0)
_FIRST_OF_55: Final = (5, 5)
#: families that always think
_ALWAYS_THINKING: Final = frozenset({"fable", "mythos"})
#: the first versions that refuse a tool choice that forces a call, by family
_FIRST_WITHOUT_FORCED_CALLS: Final = {"opus": (5, 5), "sonnet": (5, 5), "fable": (5, 1), "mythos": (5, 1)}


class Claude(NamedTuple):
    """A Claude model. `is_preview`: Claude Mythos Preview."""

    family: str
    version: tuple[int, int]
    is_preview: bool = False

    @property
    def can_think(self) -> bool:
        return self.version >= _FIRST_BUDGET

    @property
    def has_levels(self) -> bool:
        """Whether `output_config.effort` with adaptive thinking replaces the budget."""
        return self.version >= _FIRST_LEVELS

    @property
    def has_xhigh(self) -> bool:
        return self.version >= _FIRST_XHIGH

    @property
    def accepts_prefill(self) -> bool:
        """Whether the last message may be the beginning of the answer."""
        return self.version < _FIRST_LEVELS

    @property
    def omits_thinking(self) -> bool:
        """Whether the model returns the text of its thinking only on request."""
        return self.is_preview or self.version >= _FIRST_OMITTING

    @property
    def always_thinks(self) -> bool:
        return self.family in _ALWAYS_THINKING or (self.family == "opus" and self.version >= _FIRST_OF_55)

    @property
    def thinks_by_default(self) -> bool:
        return self.always_thinks or self.version >= _FIRST_THINKING_BY_DEFAULT

    @property
    def least_thinking(self) -> str:
        """The `thinking.type` that disables thinking, or limits it as far as the model allows. Not for models that
        always think."""
        return "between_tools" if self.family == "sonnet" and self.version >= _FIRST_OF_55 else "disabled"

    @property
    def accepts_sampling(self) -> bool:
        """Whether `temperature`, `top_p` and `top_k` may differ from their defaults."""
        return not self.is_preview and self.version < _FIRST_WITHOUT_SAMPLING

    @property
    def thinks_in_forced_calls(self) -> bool:
        """Whether the model accepts thinking together with a `tool_choice` that forces a call."""
        return self.version >= _FIRST_THINKING_IN_FORCED_CALLS

    @property
    def accepts_forced_calls(self) -> bool:
        """Whether `tool_choice` may force a call, at least without thinking."""
        first_without = _FIRST_WITHOUT_FORCED_CALLS.get(self.family)
        return not self.is_preview and (first_without is None or self.version < first_without)


@lru_cache(_MAX_CACHED_NAMES)
def claude(name: str) -> Claude | None:
    """Return the Claude model of this name; None for other models, and for names without a version."""
    if _MYTHOS_PREVIEW.search(name):
        return Claude("mythos", _FIRST_LEVELS, is_preview=True)
    match = _VERSION_FIRST.search(name) or _FAMILY_FIRST.search(name)
    if match is None:
        return None
    return Claude((match["family"] or "").lower(), (int(match["major"]), int(match["minor"] or 0)))
