"""The operations of the administration API as tools of MCP (docs/mcp.md). They are read from the OpenAPI document and
the routes."""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import quote, urlencode

from fastapi import APIRouter
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from gatehouse.engine.mcp.errors import InvalidParams
from gatehouse.foundation.errors import Forbidden, Unauthenticated
from gatehouse.foundation.identity import Caller
from gatehouse.platform.request.callers import MfaRequired, is_caller

#: an OpenAPI document or JSON Schema, or a part of one
Document: TypeAlias = dict[str, Any]
#: a dependency that checks a caller. It raises a `Refusal`, or returns the caller.
Check: TypeAlias = Callable[[Caller], Awaitable[Caller]]

#: path prefixes of the operations that are tools. The others are calls of models, sign-in, and the protocols of other
#: programs (SCIM, OpenID, outposts).
PREFIXES: Final = ("/api/admin/", "/api/v1/", "/api/alerts", "/v1/audit/", "/v1/platform/")
#: phrases in the description of a field that contains a secret. An operation whose response has such a field is not a
#: tool, because agents give the results of tools to models.
_SECRET_PHRASES: Final = ("shown only once", "only this response contains it")
_JSON_TYPE: Final = "application/json"
_SCHEMAS: Final = "#/components/schemas/"
_DEFINITIONS: Final = "#/$defs/"
#: argument with the body of the request
BODY: Final = "body"
_placeholders: Final = re.compile(r"\{(\w+)(:path)?\}").finditer
_METHODS_THAT_READ: Final = frozenset({"GET"})
_METHODS_TO_REPEAT: Final = frozenset({"GET", "PUT", "DELETE"})


@dataclass(frozen=True)
class Operation:
    """A tool. `path` is the template of the route. `family` is the OpenAPI tag in lower case, with hyphens."""

    name: str
    family: str
    method: str
    path: str
    #: names of the parameters in the query
    query: frozenset[str]
    has_body: bool
    #: the tool as in the result of `tools/list`
    definition: Document
    checks: tuple[Check, ...]

    @property
    def reads(self) -> bool:
        return self.method in _METHODS_THAT_READ

    async def permits(self, caller: Caller) -> bool:
        """Return whether the caller has the role and the scope for the operation. A missing second factor does not
        count: the call is refused with an error that says how to verify one."""
        try:
            for check in self.checks:
                caller = await check(caller)
        except MfaRequired:
            return True
        except (Forbidden, Unauthenticated):
            return False
        return True

    def target(self, arguments: Mapping[str, Any]) -> tuple[str, str]:
        """Return the path and the query of a call. Raises `InvalidParams`."""
        of_path = {match[1]: match[2] is not None for match in _placeholders(self.path)}
        for name in arguments:
            if name not in of_path and name not in self.query and not (name == BODY and self.has_body):
                raise InvalidParams(f"arguments.{name[:100]}", "is not a parameter of this tool.")
        values = {name: _segment(name, arguments.get(name), slashes) for name, slashes in of_path.items()}
        query = [
            (name, _text(name, item))
            for name, value in arguments.items()
            if name in self.query and value is not None
            for item in (value if type(value) is list else [value])
        ]
        return re.sub(r"\{(\w+)(?::path)?\}", lambda match: values[match[1]], self.path), urlencode(query)


def _segment(name: str, value: Any, may_have_slashes: bool) -> str:
    """Return the text of a path parameter. Raises `InvalidParams` for a value that could change the route."""
    if value is None:
        raise InvalidParams(f"arguments.{name}", "is missing.")
    text = _text(name, value)
    parts = text.split("/") if may_have_slashes else [text]
    if any(part in {"", ".", ".."} or "/" in part for part in parts):
        raise InvalidParams(f"arguments.{name}", "must be a name or an id, not a path.")
    return text


def _text(name: str, value: Any) -> str:
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) in {int, float, str}:
        return str(value)
    raise InvalidParams(f"arguments.{name}", "must be a text, a number or a truth value.")


def encoded_path(path: str) -> bytes:
    """Return the path as it is sent in a request."""
    return quote(path, safe="/").encode()


def operations(document: Document, routers: Iterable[APIRouter]) -> dict[str, Operation]:
    """Return the tools by name, in the order of the families. Of operations with the same name, such as those of an
    alias of a path, only the first is a tool."""
    tools: dict[str, Operation] = {}
    for router in routers:
        for route in router.routes:
            if isinstance(route, APIRoute) and route.path.startswith(PREFIXES):
                for method in sorted(route.methods or ()):
                    operation = _operation(document, route, method)
                    if operation is not None:
                        tools.setdefault(operation.name, operation)
    return tools


def _operation(document: Document, route: APIRoute, method: str) -> Operation | None:
    """Return the tool of a route. Return None if the route is not in the document, is for certain programs only, does
    not use JSON, or returns a new secret."""
    described: Document | None = document["paths"].get(route.path_format, {}).get(method.lower())
    checks = _checks(route.dependant)
    if described is None or checks is None:
        return None
    schemas: Document = document["components"]["schemas"]
    answers = [answer for status, answer in described["responses"].items() if status < "300"]
    contents: list[Document] = [answer["content"] for answer in answers if "content" in answer]
    body: Document | None = described.get("requestBody")
    if any(_JSON_TYPE not in content for content in contents) or (body and _JSON_TYPE not in body["content"]):
        return None
    if any(_has_secret(content[_JSON_TYPE].get("schema"), schemas, set()) for content in contents):
        return None
    query = [parameter for parameter in described.get("parameters", []) if parameter["in"] == "query"]
    return Operation(
        name=route.name,
        family=described["tags"][0].lower().replace(" ", "-"),
        method=method,
        path=route.path,
        query=frozenset(parameter["name"] for parameter in query),
        has_body=body is not None,
        definition=_definition(route.name, method, described, schemas),
        checks=checks,
    )


def _checks(dependant: Dependant) -> tuple[Check, ...] | None:
    """Return the checks of the caller, the innermost first. None if the route needs no caller, or if a check needs
    more than the caller, as the checks of SCIM and outposts do."""
    for dependency in dependant.dependencies:
        if is_caller(dependency.call):
            return ()
        inner = _checks(dependency)
        if inner is not None:
            takes_caller_only = dependency.request_param_name is None
            return (*inner, dependency.call) if takes_caller_only and dependency.call is not None else None
    return None


def _definition(name: str, method: str, described: Document, schemas: Document) -> Document:
    properties: Document = {}
    required = []
    for parameter in described.get("parameters", []):
        if parameter["in"] in {"path", "query"}:
            properties[parameter["name"]] = {**parameter["schema"], **_description_of(parameter)}
            if parameter.get("required"):
                required.append(parameter["name"])
    if body := described.get("requestBody"):
        properties[BODY] = body["content"][_JSON_TYPE]["schema"]
        if body.get("required"):
            required.append(BODY)
    schema: Document = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    definitions: Document = {}
    schema = _self_contained(schema, schemas, definitions)
    if definitions:
        schema["$defs"] = definitions
    title = described.get("summary", name)
    return {
        "name": name,
        "title": title,
        "description": described.get("description", title),
        "inputSchema": schema,
        "annotations": {
            "title": title,
            "readOnlyHint": method in _METHODS_THAT_READ,
            "destructiveHint": method == "DELETE",
            "idempotentHint": method in _METHODS_TO_REPEAT,
            "openWorldHint": False,
        },
    }


def _description_of(parameter: Document) -> Document:
    return {"description": parameter["description"]} if "description" in parameter else {}


def _self_contained(value: Any, schemas: Document, definitions: Document) -> Any:
    """Return a schema whose references point to `definitions`, and add the referenced schemas there."""
    if type(value) is list:
        return [_self_contained(item, schemas, definitions) for item in value]
    if type(value) is not dict:
        return value
    reference = value.get("$ref")
    if type(reference) is str and reference.startswith(_SCHEMAS):
        name = reference.removeprefix(_SCHEMAS)
        if name not in definitions:
            definitions[name] = {}
            definitions[name] = _self_contained(schemas[name], schemas, definitions)
        value = {**value, "$ref": _DEFINITIONS + name}
    if "discriminator" in value:
        # JSON Schema does not define `discriminator`, whose mapping contains references too.
        value = {key: item for key, item in value.items() if key != "discriminator"}
    return {key: _self_contained(item, schemas, definitions) for key, item in value.items()}


def _has_secret(value: Any, schemas: Document, seen: set[str]) -> bool:
    """Return whether a field of a schema contains a secret."""
    texts = (text.lower() for text in _descriptions(value, schemas, seen))
    return any(phrase in text for text in texts for phrase in _SECRET_PHRASES)


def _descriptions(value: Any, schemas: Document, seen: set[str]) -> Iterator[str]:
    if type(value) is list:
        for item in value:
            yield from _descriptions(item, schemas, seen)
    elif type(value) is dict:
        reference = value.get("$ref")
        if type(reference) is str and reference not in seen:
            seen.add(reference)
            yield from _descriptions(schemas[reference.removeprefix(_SCHEMAS)], schemas, seen)
        if type(value.get("description")) is str:
            yield value["description"]
        for item in value.values():
            yield from _descriptions(item, schemas, seen)
