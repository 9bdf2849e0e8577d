"""Writes docs/reference/. The pages list every operation with its parameters, fields, limits, states and errors, from
the OpenAPI documents, and all error codes of the product, from its error classes.

    make reference

A test checks that the pages are up to date.
"""

import argparse
import importlib
import pkgutil
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import gatehouse
from gatehouse.cli.openapi import document
from gatehouse.foundation.errors import Refusal

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "reference"
_TITLES: Final = {"platform": "Platform", "portal": "Cloud portal", "outpost": "Outpost"}
_METHODS: Final = ("get", "post", "put", "patch", "delete")
#: Statuses that nearly every operation has. The index explains them once.
_COMMON_STATUSES: Final = frozenset({"400", "401", "403", "422", "429", "503"})
#: Maximum depth to which nested fields are listed.
_MAX_DEPTH: Final = 3
_LIMITS: Final = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "maxProperties": "at most {} fields",
    "pattern": "matches `{}`",
}


def pages() -> dict[str, str]:
    """Return the text of each page by its file name."""
    result = {"error-codes.md": _error_codes()}
    families: list[tuple[str, str, str, int]] = []
    for application in _TITLES:
        api = document(application)
        for tag, operations in sorted(_by_tag(api).items()):
            name = f"{application}-{tag.lower().replace(' ', '-')}.md"
            result[name] = _family(application, tag, operations, api)
            families.append((application, tag, name, len(operations)))
    result["index.md"] = _index(families)
    return result


def _by_tag(api: dict[str, Any]) -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    tags: dict[str, list[tuple[str, str, dict[str, Any]]]] = defaultdict(list)
    for path, item in api["paths"].items():
        for method in _METHODS:
            if method in item:
                tags[item[method]["tags"][0]].append((method.upper(), path, item[method]))
    return tags


def _index(families: Iterable[tuple[str, str, str, int]]) -> str:
    lines = [
        "# Reference",
        "",
        "Every operation of the three applications, generated from their OpenAPI documents",
        "(`gatehouse openapi platform`). Error codes are listed on [a page of their own](error-codes.md).",
        "[Errors](../errors.md) explains the forms of error bodies, [Variants](../variants.md) the operations",
        "that exist in two shapes.",
        "",
        "These answers are the same for all operations that need a credential, and are not repeated:",
        "",
        "| Status | When |",
        "|---|---|",
        "| 400, 422 | a parameter or field is not valid; the answer names it |",
        "| 401 | the credential is missing or not valid |",
        "| 403 | the credential does not permit this |",
        "| 429 | too many requests; `Retry-After` gives the seconds to wait |",
        "| 503 | not available now, or closed for maintenance |",
        "",
        "| Application | Family | Operations |",
        "|---|---|---|",
    ]
    lines += [f"| {_TITLES[app]} | [{tag}]({name}) | {count} |" for app, tag, name, count in families]
    return "\n".join(lines) + "\n"


def _family(application: str, tag: str, operations: list[tuple[str, str, dict[str, Any]]], api: dict[str, Any]) -> str:
    lines = [f"# {tag} ({_TITLES[application].lower()})", ""]
    for method, path, operation in operations:
        lines += _operation(method, path, operation, api)
    return "\n".join(lines).rstrip() + "\n"


def _operation(method: str, path: str, operation: dict[str, Any], api: dict[str, Any]) -> Iterator[str]:
    yield from (f"## {method} {path}", "", _sentence(operation.get("description") or operation["summary"]), "")
    schemes = [name for choice in operation.get("security", ()) for name in choice]
    yield from (f"Credential: {', '.join(f'`{name}`' for name in schemes) or 'none'}.", "")
    if parameters := operation.get("parameters"):
        yield from ("| Parameter | In | Type | Limits and meaning |", "|---|---|---|---|")
        for parameter in parameters:
            required = " (required)" if parameter.get("required") else ""
            schema = parameter.get("schema", {})
            description = parameter.get("description", "")
            meaning = _meaning({**schema, "description": description or schema.get("description", "")}, api)
            yield f"| `{parameter['name']}`{required} | {parameter['in']} | {_type(schema, api)} | {meaning} |"
        yield ""
    for schema in _schemas(operation.get("requestBody", {})):
        yield from _fields("Body", schema, api)
    for status, answer in sorted(operation["responses"].items()):
        if status.startswith("2"):
            text = _sentence(answer.get("description", ""))
            yield from (f"Answer {status}: {text if text != 'Successful Response.' else 'success.'}", "")
            for schema in _schemas(answer):
                yield from _fields("Answer", schema, api)
    others = {status: item for status, item in operation["responses"].items() if not status.startswith("2")}
    if rest := {status: item for status, item in sorted(others.items()) if status not in _COMMON_STATUSES}:
        yield from ("| Status | When |", "|---|---|")
        yield from (f"| {status} | {_cell(item.get('description', ''))} |" for status, item in rest.items())
        yield ""


def _schemas(part: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the distinct schemas of a body."""
    schemas: list[dict[str, Any]] = []
    for content in part.get("content", {}).values():
        schema = content.get("schema")
        if schema and schema not in schemas:
            schemas.append(schema)
    return schemas


def _fields(title: str, schema: dict[str, Any], api: dict[str, Any]) -> Iterator[str]:
    rows = list(_rows(schema, api, "", 0, frozenset()))
    if rows:
        yield from (f"| {title} field | Type | Limits and meaning |", "|---|---|---|")
        yield from rows
        yield ""
    elif schema:
        yield from (f"{title}: {_type(schema, api)}.", "")


def _rows(schema: dict[str, Any], api: dict[str, Any], prefix: str, depth: int, seen: frozenset[str]) -> Iterator[str]:
    for part in _objects(schema, api, seen):
        seen_here = seen | {_name(part[0])}
        resolved = part[1]
        required = set(resolved.get("required", ()))
        for name, field in resolved.get("properties", {}).items():
            mark = " (required)" if name in required else ""
            yield f"| `{prefix}{name}`{mark} | {_type(field, api)} | {_meaning(field, api)} |"
            if depth + 1 < _MAX_DEPTH:
                suffix = "[]." if _is_list(field) else "."
                yield from _rows(field, api, f"{prefix}{name}{suffix}", depth + 1, seen_here)


def _objects(schema: dict[str, Any], api: dict[str, Any], seen: frozenset[str]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the objects that a schema describes, including those in lists and alternatives. Objects in `seen` are left
    out, because they are already being described."""
    if "$ref" in schema:
        if _name(schema) not in seen:
            for _, inner in _objects(_resolved(schema, api), api, seen | {_name(schema)}):
                yield schema, inner
        return
    for key in ("anyOf", "oneOf", "allOf"):
        for choice in schema.get(key, ()):
            yield from _objects(choice, api, seen)
    if "properties" in schema:
        yield schema, schema
    if isinstance(schema.get("items"), dict):
        yield from _objects(schema["items"], api, seen)


def _name(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _resolved(schema: dict[str, Any], api: dict[str, Any]) -> dict[str, Any]:
    resolved: dict[str, Any] = api["components"]["schemas"][_name(schema)] if "$ref" in schema else schema
    return resolved


def _is_list(schema: dict[str, Any]) -> bool:
    choices = [*schema.get("anyOf", ()), schema]
    return any(choice.get("type") == "array" for choice in choices)


def _type(schema: dict[str, Any], api: dict[str, Any]) -> str:
    if "$ref" in schema:
        resolved = _resolved(schema, api)
        return "object" if "properties" in resolved else _type(resolved, api)
    choices = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if choices:
        return " or ".join(dict.fromkeys(_type(choice, api) for choice in choices))
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {_type(schema.get('items', {}), api)}"
    return f"{kind} ({schema['format']})" if "format" in schema else str(kind)


def _meaning(schema: dict[str, Any], api: dict[str, Any]) -> str:
    """Return the text for a field: its description, values, limits and default."""
    parts: list[str] = []
    for choice in _choices(schema, api):
        if "enum" in choice:
            parts.append("one of " + ", ".join(f"`{value}`" for value in choice["enum"]))
        if "const" in choice:
            parts.append(f"`{choice['const']}`")
        parts += [text.format(_number(choice[key])) for key, text in _LIMITS.items() if key in choice]
    if schema.get("default") is not None:
        parts.append(f"default `{schema['default']}`")
    return _joined(schema.get("description", ""), "; ".join(dict.fromkeys(parts)))


def _choices(schema: dict[str, Any], api: dict[str, Any]) -> Iterator[dict[str, Any]]:
    resolved = _resolved(schema, api)
    if "properties" in resolved:
        return
    yield resolved
    for key in ("anyOf", "oneOf", "allOf"):
        for choice in resolved.get(key, ()):
            yield from _choices(choice, api)
    if isinstance(resolved.get("items"), dict):
        yield from _choices(resolved["items"], api)


def _joined(*texts: str) -> str:
    return ". ".join(cell[0].upper() + cell[1:] for text in texts if (cell := _cell(text).rstrip(".")))


def _number(value: object) -> str:
    return f"{value:.15g}" if isinstance(value, float) else _cell(str(value))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if not text or text.endswith((".", "!", "?", ":")) else f"{text}."


def _error_codes() -> str:
    for module in pkgutil.walk_packages(gatehouse.__path__, "gatehouse."):
        if not module.name.endswith("__main__") and ".migrations." not in module.name:
            importlib.import_module(module.name)
    codes: dict[tuple[int, str], set[str]] = defaultdict(set)
    for error in _subclasses(Refusal):
        if error.__module__.startswith("gatehouse.") and error.code is not None:
            own = error.message != error.__base__.message or error.__base__ is Refusal
            codes[error.status, error.code].add(" ".join(error.message.split()) if own else "")
    lines = [
        "# Error codes",
        "",
        "Every machine-readable code, by status. The message is the usual one. Where none is listed, the message names",
        "what is at fault.",
        "Families whose errors have the plain `detail` form have no codes: see [Errors](../errors.md).",
        "",
        "| Status | Code | Message |",
        "|---|---|---|",
    ]
    for (status, code), messages in sorted(codes.items()):
        texts = " / ".join(sorted(_cell(message) for message in messages if message))
        lines.append(f"| {status} | `{code}` | {texts} |")
    return "\n".join(lines) + "\n"


def _subclasses(error: type[Refusal]) -> Iterator[type[Refusal]]:
    for subclass in error.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    texts = pages()
    for stale in {path.name for path in FOLDER.glob("*.md")} - texts.keys():
        (FOLDER / stale).unlink()
    for name, text in texts.items():
        (FOLDER / name).write_text(text, "utf-8")
    print(f"{len(texts)} pages in {FOLDER}")


if __name__ == "__main__":
    main()
