"""A module of a few lines that only one module imports is part of that module. A short `errors` module is also part of
an importer that all its other importers import."""

import ast
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).parents[2] / "src"
#: A module with at most this many lines is small.
MAX_SMALL_LINES: Final = 40
#: The limit of `test_source_files_are_short`. A module that would make its importer longer stands alone.
MAX_LINES: Final = 450
#: The modules of a family (ARCHITECTURE.md), and of a provider's or a dialect's folder.
USUAL_NAMES: Final = frozenset({"routes", "schemas", "service", "table", "variants", "policy_records", "dialect"})
#: In these folders, the recipes of CONTRIBUTING or a table name one module for each thing of a kind.
ONE_MODULE_PER_KIND: Final = {
    "gatehouse.engine.stages": "one module for each stage",
    "gatehouse.detection.validators": "one module for each kind of value",
    "gatehouse.foundation.siem.senders": "one module for each kind of receiver",
}
#: Other small modules that stand alone, with the reason.
EXCEPTIONS: Final = {
    "gatehouse.engine.dlp.streams.link_addresses": "a rule about texts, beside the modules that move them",
    "gatehouse.engine.measures.output_sizes": "one of the measures, which stand together",
    "gatehouse.engine.routing.cost": "the cost of a call is looked for here",
    "gatehouse.portal.keys.resealing": "the list of the sealed columns; the command line imports it when it is called",
    "gatehouse.portal.server.duties": "background work is found by its name",
}


def importers(modules: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the modules that import each module. `modules` has the source of each module."""
    result: defaultdict[str, set[str]] = defaultdict(set)
    for name, source in modules.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    imported = f"{node.module}.{alias.name}"
                    result[imported if imported in modules else node.module].add(name)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    result[alias.name].add(name)
    return result


def stands_alone(name: str) -> bool:
    """Return whether the name of a module says that it is a file of its own, however short."""
    return name.rpartition(".")[2] in USUAL_NAMES or any(
        name.startswith(f"{folder}.") for folder in ONE_MODULE_PER_KIND
    )


def owners(name: str, imported_by: Mapping[str, set[str]]) -> list[str]:
    """Return the modules that may contain the code of a module."""
    package, _, short_name = name.rpartition(".")
    if short_name != "errors":
        return list(imported_by[name]) if len(imported_by[name]) == 1 else []
    others = imported_by[name] - {package}
    return [owner for owner in sorted(others) if others - {owner} <= imported_by[owner]]


def to_fold(modules: Mapping[str, str]) -> dict[str, str]:
    """Return the small modules that should be part of another module, with this module."""
    lines = {name: len(source.splitlines()) for name, source in modules.items()}
    imported_by = importers(modules)
    return {
        name: owner
        for name in modules
        if lines[name] <= MAX_SMALL_LINES and not stands_alone(name)
        for owner in owners(name, imported_by)
        if lines[name] + lines[owner] <= MAX_LINES
    }


def test_a_small_module_has_several_importers() -> None:
    modules = {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path.read_text("utf-8")
        for path in SOURCE.rglob("*.py")
    }
    packages = {name for name in modules if (SOURCE / name.replace(".", "/")).is_dir()}
    folded = {name: importer for name, importer in to_fold(modules).items() if name not in packages}
    assert folded.keys() == EXCEPTIONS.keys(), folded


def test_a_small_module_with_one_importer_is_noticed() -> None:
    long = "X = 1\n" * MAX_LINES
    modules = {
        "gatehouse.a": "from gatehouse import b, shared, near\nfrom gatehouse.c import X\n",
        "gatehouse.b": "X = 1\n" * MAX_SMALL_LINES,
        "gatehouse.c": "from gatehouse import shared\n" + "X = 1\n" * MAX_SMALL_LINES,
        "gatehouse.shared": "",
        "gatehouse.near": "",
        "gatehouse.long": f"import gatehouse.d\nfrom gatehouse import routes\n{long}",
        "gatehouse.d": "",
        "gatehouse.routes": "",
        "gatehouse.unused": "",
    }
    assert to_fold(modules) == {"gatehouse.b": "gatehouse.a", "gatehouse.near": "gatehouse.a"}


def test_a_short_module_of_errors_is_noticed() -> None:
    modules = {
        # A family: the package and the routes import the service.
        "gatehouse.a": "from gatehouse.a.errors import X\n",
        "gatehouse.a.errors": "X = 1\n" * MAX_SMALL_LINES,
        "gatehouse.a.service": "from gatehouse.a.errors import X\n",
        "gatehouse.a.routes": "from gatehouse.a.errors import X\nfrom gatehouse.a import service\n",
        # Two importers that do not import each other.
        "gatehouse.b.errors": "",
        "gatehouse.b.one": "from gatehouse.b import errors\n",
        "gatehouse.b.two": "from gatehouse.b import errors\n",
        # More than a few lines.
        "gatehouse.c.errors": "X = 1\n" * (MAX_SMALL_LINES + 1),
        "gatehouse.c.service": "from gatehouse.c.errors import X\n",
    }
    assert to_fold(modules) == {"gatehouse.a.errors": "gatehouse.a.service"}
