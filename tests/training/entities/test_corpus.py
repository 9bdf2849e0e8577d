import gzip
import json
import random
import re
from pathlib import Path

import pytest
from training.entities.corpus import KINDS, Example, in_units, load
from training.entities.folds import FOLDS, folds_of
from training.entities.made_names import MadeNames
from training.entities.prose import Prose
from training.entities.wordings import CARRIERS, Wordings

from gatehouse.detection.units import MIN_UNIT_CHARACTERS

TEXT = "Ada Keller of Acme Foods met Boris Okafor in Oslo."
SPANS = [(0, 10, "person"), (14, 24, "organization"), (29, 41, "person"), (45, 49, "location")]


def written(folder: Path, name: str, text: str, *spans: tuple[int, int, str]) -> Path:
    rows = [
        {"doc_id": "1", "text": text, "group": "g", "label": label, "start": start, "end": end, "is_positive": True}
        for start, end, label in spans
    ]
    with gzip.open(folder / f"{name}.jsonl.gz", "wt") as out:
        out.write("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.mark.parametrize(
    ("name", "text", "span", "spans"),
    [
        ("b_btc", "Ada is here", (0, 3, "person"), [(0, 3, "person")]),
        ("b_btc", "An Iraqi wrote", (3, 8, "location"), []),
        ("b_btc", "On 3 May", (3, 8, "date"), []),
        ("b_sec", "The Borrower pays", (4, 12, "person"), []),
        ("b_re3d_gov", "We met the Kurdish YPG", (7, 22, "organization"), [(11, 22, "organization")]),
        ("b_re3d_gov", "The Prime Minister met us", (0, 18, "person"), []),
        ("b_re3d_gov", "killed other terrorists", (7, 23, "organization"), []),
    ],
)
def test_spans_that_are_not_names_are_left_out(
    tmp_path: Path, name: str, text: str, span: tuple[int, int, str], spans: list[tuple[int, int, str]]
) -> None:
    (example,) = load(written(tmp_path, name, text, span), name)
    assert example.spans == spans


def test_handles_are_marked_as_unsure(tmp_path: Path) -> None:
    (example,) = load(written(tmp_path, "b_btc", "RT @ada: Ada", (9, 12, "person")), "b_btc")
    assert example.unsure == [(3, 7)]


def test_spans_move_with_their_unit() -> None:
    first = "x" * MIN_UNIT_CHARACTERS + ". "
    moved = [(start + len(first), end + len(first), kind) for start, end, kind in SPANS]
    cut = list(in_units([Example(first + TEXT, "g", "b_btc", moved)]))
    assert [one.text[start:end] for one in cut for start, end, _ in one.spans] == [
        TEXT[start:end] for start, end, _ in SPANS
    ]


def test_another_wording_keeps_its_names_marked() -> None:
    example = Example(TEXT, "g", "b_btc", list(SPANS), [(25, 28)])
    wordings = Wordings([example], random.Random(1))
    seen = set()
    for _ in range(200):
        other = wordings.of(example)
        seen.add(other.text)
        assert [kind for _, _, kind in other.spans] == [kind for _, _, kind in SPANS]
        between = [other.text[a[1] : b[0]].lower() for a, b in zip(other.spans, other.spans[1:], strict=False)]
        assert between == [" of ", " met ", " in "]
        assert [other.text[start:end].lower() for start, end in other.unsure] == ["met"]
    assert len(seen) > 50


def test_the_same_draw_gives_the_same_made_up_names() -> None:
    example = Example(TEXT, "g", "b_btc", list(SPANS))
    one, two = (MadeNames([example], random.Random(3)) for _ in range(2))
    assert [one.of(kind) for kind in KINDS * 20] == [two.of(kind) for kind in KINDS * 20]


def test_every_fold_has_groups_and_keeps_them_on_every_call() -> None:
    examples = [Example(f"{number} " * 5, f"set|file|{number}", "b_btc") for number in range(500)]
    folds = folds_of(examples)
    assert sorted(set(folds.values())) == list(range(FOLDS))
    assert folds == folds_of(examples)


def test_a_text_and_its_copy_in_another_group_are_held_out_together() -> None:
    copies = [Example(f"RT @user{number}: {TEXT}", f"set|file|{number}", "b_btc") for number in range(20)]
    others = [Example(f"{number} " * 5, f"set|file|{number}", "b_btc") for number in range(20)]
    assert len(set(folds_of(copies).values())) == 1
    assert len(set(folds_of(others).values())) > 1


def test_a_text_within_another_one_keeps_its_names_marked() -> None:
    example = Example(TEXT, "g", "b_sec", list(SPANS))
    wordings = Wordings([example], random.Random(1))
    seen = {other.text for other in map(wordings.of, [example] * 500) if other.text.lower().endswith(CARRIERS[0][1])}
    assert any(text.startswith(CARRIERS[0][0]) for text in seen)


@pytest.mark.parametrize(("old", "new"), [("#adakeller", r"#[^\WA-Z]+"), ("ada keller", "[^#A-Z]+")])
def test_another_name_is_written_as_the_old_one(old: str, new: str) -> None:
    example = Example(f"I saw {old} today.", "g", "b_sec", [(6, 6 + len(old), "person")])
    named = Example(TEXT, "g", "b_sec", list(SPANS))
    wordings = Wordings([named], random.Random(1))
    for _ in range(100):
        assert re.fullmatch(new, wordings._swapped(example).text[6:-7])


def test_a_handle_behind_its_mark_keeps_its_name() -> None:
    example = Example("Hi @Ada!", "g", "b_btc", [(4, 7, "person")])
    wordings = Wordings([Example(TEXT, "g", "b_sec", list(SPANS))], random.Random(1))
    assert {wordings._swapped(example).text for _ in range(50)} == {example.text}


def test_names_of_made_up_sentences_are_marked_whole() -> None:
    draw = random.Random(5)
    sentences = Prose(MadeNames([Example(TEXT, "g", "b_sec", list(SPANS))], draw), draw).sentences(2000)
    assert all("{" + letter + "}" not in one.text for one in sentences for letter in "PAFLOCBGTENMYJDHW")
    named = [one.text[start:end] for one in sentences for start, end, _ in one.spans]
    assert all(name == name.strip() and name for name in named)
    assert any(name.startswith("#") for name in named)
    assert not any(name.startswith("@") for name in named)
