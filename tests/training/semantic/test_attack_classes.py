"""Properties of the made-up attacks and of their harmless counterparts."""

import re
from collections.abc import Sequence
from random import Random

import pytest
from training.semantic.corpus import classes, lookalikes
from training.semantic.corpus.words import Maker

MAKERS = [maker for bank in (classes.INJECTIONS, classes.JAILBREAKS, lookalikes.LOOKALIKES) for maker, _ in bank]
SLOTS = re.compile(r"\{(?:role|name|assistant|maker|company|language|person|subject|harm|code|without|suppress|note)\}")


def texts(maker: Maker, seed: int, count: int = 60) -> list[str]:
    random = Random(seed)
    return [maker(random) for _ in range(count)]


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: f"{maker.__module__.rpartition('.')[2]}.{maker.__name__}")
def test_a_class_generates_many_texts_without_unfilled_slots(maker: Maker) -> None:
    made = texts(maker, 1)
    assert made == texts(maker, 1)
    assert len(set(made)) > 30
    assert all(text.strip() for text in made)
    assert not [text for text in made if SLOTS.search(text) or re.search("[\x01-\x03]", text)]


@pytest.mark.parametrize("bank", [classes.INJECTIONS, classes.JAILBREAKS, lookalikes.LOOKALIKES])
def test_each_class_has_a_share(bank: Sequence[tuple[Maker, int]]) -> None:
    assert all(share > 0 for _, share in bank)


def test_both_sides_have_the_same_carriers() -> None:
    def subjects(maker: Maker) -> set[str]:
        return {
            text[:6] for text in texts(maker, 2, 400) if text[:6] in {"From: ", "<html>", "| name", "[tool ", "README"}
        }

    assert len(subjects(classes.indirect)) == len(subjects(lookalikes.in_carrier)) == 5
