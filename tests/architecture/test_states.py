"""The states of a request are frozen and complete, and no stage stores a value in an earlier state
(`gatehouse/engine/exchange.py`)."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from gatehouse.engine import exchange
from gatehouse.engine.conversation import call

ENGINE: Final = Path(__file__).parents[2] / "src" / "gatehouse" / "engine"
#: Structs that are not states: the record of a request, its answer, the answer that is collected for the cache, and the
#: call whose texts DLP replaces.
RECORDS: Final = {"Answer", "CollectedAnswer", "Exchange", "ModelCall", "NativeCall"}
#: Assignments of stages to attributes of their arguments, by module. DLP replaces values in the call. The other
#: targets are records.
ASSIGNED: Final = {
    "dlp_input": {"x.call.headers", "x.call.model", "x.call.raw_body", "inspection.action", "inspection.seconds"},
    "dlp_output": {"error.text", "inspection.seconds"},
    "policy_rules": {"sample.facts", "sample.policy_action"},
    "response_cache": {"collected.lost_parts", "x.collected.blocks", "x.collected.lost_parts"},
    "sampling": {"sample.answer", "sample.texts"},
}


def structs() -> Iterator[type[msgspec.Struct]]:
    """Yield the structs of the modules that define states."""
    for module in (exchange, call):
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__module__ == module.__name__:
                yield value


def assigned(source: str) -> set[str]:
    """Return the attributes that a module assigns to, except those of `self`."""
    targets: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign):
            nodes = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            nodes = [node.target]
        else:
            continue
        for target in nodes:
            parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            targets |= {ast.unparse(part) for part in parts if isinstance(part, ast.Attribute)}
    return {target for target in targets if not target.startswith("self.")}


def test_states_are_frozen() -> None:
    thawed = {struct.__name__ for struct in structs() if not struct.__struct_config__.frozen}
    assert thawed == RECORDS


def test_no_stage_assigns_to_a_state() -> None:
    modules = {path.stem: assigned(path.read_text("utf-8")) for path in sorted((ENGINE / "stages").rglob("*.py"))}
    assert len(modules) > 20
    assert {name: targets for name, targets in modules.items() if targets} == ASSIGNED


def test_a_call_and_a_reply_are_created_with_all_their_values() -> None:
    """DLP alone replaces values of a call (`ASSIGNED`)."""
    made = {field for struct in (call.ModelCall, call.NativeCall) for field in struct.__struct_fields__}
    made |= {"dropped", "events", "exhausted_seconds", "whole_lost_parts"}
    targets = {
        (path.stem, target)
        for package in ("conversation", "providers", "routing")
        for path in sorted((ENGINE / package).rglob("*.py"))
        for target in assigned(path.read_text("utf-8"))
        if target.rpartition(".")[2] in made
    }
    assert targets == set()


def test_an_assignment_of_a_stage_is_noticed() -> None:
    assert assigned("def check(x):\n    x.call.native.keeps, self.a = True, 1\n    x.rate += 1\n") == {
        "x.call.native.keeps",
        "x.rate",
    }
