"""The body of an update is derived from the body of the creation, so that their bounds cannot differ."""

import ast
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).parents[2] / "src" / "gatehouse"

HAND_WRITTEN: Final = """
class NewNote(Body):
    text: str

class NoteUpdate(Body):
    text: str
"""
DERIVED: Final = """
class _Fields(Body):
    text: str

class NewNote(_Fields):
    topic: str

class NewPage(Body):
    title: str

@partial
class NoteUpdate(_Fields): ...

@partial
class PageUpdate(NewPage): ...
"""


def hand_written(code: str) -> list[str]:
    """Return the classes `XUpdate` of a module that neither derive from its class `NewX` nor share a base with it that
    is in this module."""
    classes = {node.name: node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ClassDef)}

    def family(name: str) -> set[str]:
        """Return the class and its bases in this module."""
        bases = {base.id for base in classes[name].bases if isinstance(base, ast.Name)} & classes.keys()
        return {name}.union(*map(family, bases))

    pairs = ((f"New{name.removesuffix('Update')}", name) for name in classes if name.endswith("Update"))
    return [update for creation, update in pairs if creation in classes and family(creation).isdisjoint(family(update))]


def test_bodies_of_updates_are_derived_from_those_of_creations() -> None:
    faults = {
        str(path.relative_to(SOURCE)): names
        for path in SOURCE.rglob("*.py")
        if (names := hand_written(path.read_text()))
    }
    assert faults == {}


def test_a_hand_written_pair_is_found() -> None:
    assert hand_written(HAND_WRITTEN) == ["NoteUpdate"]
    assert hand_written(DERIVED) == []
