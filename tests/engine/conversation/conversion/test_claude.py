"""The family, version and capabilities of a Claude model, derived from its name."""

import pytest

from gatehouse.engine.conversation.conversion.claude import Claude, claude


@pytest.mark.parametrize(
    ("name", "family", "version"),
    [
        ("claude-3-opus-20240229", "opus", (3, 0)),
        ("claude-3-5-haiku-latest", "haiku", (3, 5)),
        ("claude-3-7-sonnet-20250219", "sonnet", (3, 7)),
        ("anthropic/claude-3.7-sonnet", "sonnet", (3, 7)),
        ("claude-sonnet-4-20250514", "sonnet", (4, 0)),
        ("claude-opus-4@20250514", "opus", (4, 0)),
        ("claude-opus-4.6", "opus", (4, 6)),
        ("eu.anthropic.claude-haiku-4-5-20251001-v1:0", "haiku", (4, 5)),
        ("claude-4.7-opus", "opus", (4, 7)),
        ("Claude-Sonnet-5", "sonnet", (5, 0)),
        ("global.anthropic.claude-opus-5-5", "opus", (5, 5)),
        ("claude-fable-5-1", "fable", (5, 1)),
    ],
)
def test_family_and_version(name: str, family: str, version: tuple[int, int]):
    assert claude(name) == Claude(family, version)


@pytest.mark.parametrize("name", ["gpt-5", "our-model", "claude", "claude-latest", ""])
def test_other_names_are_no_claude_models(name: str):
    assert claude(name) is None


@pytest.mark.parametrize(
    ("name", "accepts_sampling", "accepts_forced_calls"),
    [
        ("claude-opus-4-6", True, True),
        ("claude-mythos-preview", False, False),
        ("claude-opus-4-7", False, True),
        ("claude-sonnet-5", False, True),
        ("claude-fable-5", False, True),
        ("claude-fable-5-1", False, False),
        ("claude-haiku-5-5", False, True),
        ("claude-sonnet-5-5", False, False),
        ("claude-opus-5-5", False, False),
    ],
)
def test_the_version_decides_whether_sampling_and_forced_calls_are_accepted(
    name: str, accepts_sampling: bool, accepts_forced_calls: bool
):
    model = claude(name)
    assert model is not None
    assert (model.accepts_sampling, model.accepts_forced_calls) == (accepts_sampling, accepts_forced_calls)
