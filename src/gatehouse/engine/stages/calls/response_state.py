"""Binds what a provider keeps to the caller (docs/clients.md): responses and items of the Responses API, and containers
of this API and of Anthropic's messages.

The ids that a client receives are bound to its organization and user. A follow-up with the id of another user, or with
an id that the gateway did not make, is refused. The call continues with the provider's ids.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from gatehouse.engine.conversation.call import NO_OPTIONS, KeptRequest, NativeCall, NativeOptions, resolved_call
from gatehouse.engine.conversation.dialects.openai_responses.native import LEFT_OUT, NATIVE_OPERATIONS
from gatehouse.engine.conversation.dialects.openai_responses.references import kind_of
from gatehouse.engine.conversation.errors import InvalidField, ResponseNotFound
from gatehouse.engine.exchange import CallRequest, Identified
from gatehouse.engine.fields.naming import declared_tools, hosted_tools
from gatehouse.engine.fields.tables import ALL_TOOLS, TOOLS
from gatehouse.engine.ports import Ports
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.foundation.secrets.owned_ids import CONTAINER_PREFIX, KeptObject, has_container_form, has_item_form

_RESPONSE_PREFIX: Final = "resp_"
#: parameters of a list of items whose values are ids of items
_ITEM_PARAMETERS: Final = frozenset({"after", "before"})
#: by the type of an item: the field with its content. If an item has no such field, the provider reads the content by
#: the item's id
_CONTENT_FIELDS: Final[Mapping[str | None, str]] = {
    "image_generation_call": "result",
    "reasoning": "encrypted_content",
}
#: fields of calls of a computer, and of their outputs, with objects that have an id
_SAFETY_CHECKS: Final = ("acknowledged_safety_checks", "pending_safety_checks")
#: field of an answer to a request for approval, with the id of the request
_APPROVAL: Final = "approval_request_id"
#: the key of a container's id in items, in their annotations, and in the options of tools
_CONTAINER_ID: Final = "container_id"
#: the beginning of the ids of containers, without which a body need not be searched
_CONTAINER_SIGN: Final = CONTAINER_PREFIX.encode()
#: dialects of Anthropic's messages, whose body may name a container
_WITH_CONTAINER: Final = frozenset({"anthropic_messages", "anthropic_token_count"})
#: an object that may have the id of a container, the key of the id, and its place in the body
_Place: TypeAlias = tuple[dict[str, Any], str, str]
#: fields with ids that an item answers
_ANSWERING_FIELDS: Final = frozenset({_APPROVAL, *_SAFETY_CHECKS})


def owner(x: Identified) -> bytes:
    """Return whom an id is bound to: the organization, and the user or client."""
    return f"{x.policy.tenant_id}/{x.caller.actor_id}".encode()


def resolve(x: CallRequest, ports: Ports) -> Verdict | CallRequest:
    """Return the call with the provider's ids. A call of another API is not changed."""
    call = x.call
    if call.dialect not in NATIVE_OPERATIONS:
        return _resolve_message(x, ports) if call.dialect in _WITH_CONTAINER else ALLOW
    resolved = _resolve(x, ports) if call.kept is None else _resolve_kept(x, call.kept, ports)
    return resolved if isinstance(resolved, Refuse) else msgspec.structs.replace(x, call=resolved)


def _resolve_kept(x: CallRequest, request: KeptRequest, ports: Ports) -> NativeCall | Refuse:
    bound_to = owner(x.identified)
    previous = ports.owned_ids.read_response_id(bound_to, request.public_id)
    if previous is None:
        return Refuse(ResponseNotFound())
    parameters: list[tuple[str, str]] = []
    for name, value in request.parameters:
        upstream_id = ports.owned_ids.read_item_id(bound_to, value) if name in _ITEM_PARAMETERS else value
        if upstream_id is None:
            return Refuse(InvalidField(name, f"`{name}` must be the id of an item in the list."))
        parameters.append((name, upstream_id))
    options = NativeOptions(
        keeps=True,
        previous=previous,
        public_id=_public_ids(bound_to, ports),
        public_container=_public_containers(bound_to, ports),
    )
    return resolved_call(x.call, options, msgspec.structs.replace(request, parameters=parameters))


def _resolve(x: CallRequest, ports: Ports) -> NativeCall | Refuse:
    dialect, body = x.call.dialect, x.call.body
    allowed, bound_to = x.identified.policy.allowed_fields, owner(x.identified)
    is_answered = NATIVE_OPERATIONS[dialect].path == "responses"
    keeps = is_answered and "store" in allowed and body.get("store") is not False
    previous = None
    if body.get("previous_response_id") is not None and "previous_response_id" in allowed:
        previous = ports.owned_ids.read_response_id(bound_to, body["previous_response_id"])
        if previous is None:
            return Refuse(ResponseNotFound(param="previous_response_id"))
        body["previous_response_id"] = previous.id
    runs_tools = bool(allowed) and any(
        field.name in allowed or ALL_TOOLS in allowed for field in hosted_tools(dialect, body)
    )
    containers = _resolve_containers(x, _containers(dialect, body), bound_to, ports)
    if isinstance(containers, Refuse):
        return containers
    references = _resolve_items(body.get("input"), bound_to, ports)
    if isinstance(references, Refuse):
        return references
    options = NativeOptions(
        keeps=keeps,
        previous=previous,
        references=references,
        left_out=_left_out(body, allowed),
        public_id=_public_ids(bound_to, ports) if keeps else None,
        public_container=_public_containers(bound_to, ports),
        containers=containers,
        fills_context=previous is not None or runs_tools or bool(references),
    )
    return resolved_call(x.call, options, None)


def _public_containers(bound_to: bytes, ports: Ports) -> Callable[[str, str, str], str]:
    def public_id(provider: str, model: str, upstream_id: str) -> str:
        return ports.owned_ids.container_id(bound_to, KeptObject(provider, model, upstream_id))

    return public_id


def _resolve_message(x: CallRequest, ports: Ports) -> Verdict | CallRequest:
    """Resolve the container of Anthropic's messages: an id, or an object with an id."""
    container = x.call.body.get("container")
    if container is None and not x.identified.policy.allowed_fields:
        # The provider runs no tool without a permission, so the answer names no container.
        return ALLOW
    places = [(x.call.body, "container", "container")]
    if isinstance(container, dict):
        places = [(container, "id", "container.id")]
    bound_to = owner(x.identified)
    containers = _resolve_containers(x, places, bound_to, ports)
    if isinstance(containers, Refuse):
        return containers
    options = NativeOptions(public_container=_public_containers(bound_to, ports), containers=containers)
    return msgspec.structs.replace(x, call=resolved_call(x.call, options, None))


def _resolve_containers(
    x: CallRequest, places: Iterable[_Place], bound_to: bytes, ports: Ports
) -> Mapping[str, str] | Refuse:
    """Replace the public ids of containers by the provider's. Return the providers of the containers by these ids.
    Refuses an id of another owner."""
    if _CONTAINER_SIGN not in x.call.raw_body:
        return NO_OPTIONS.containers
    containers: dict[str, str] = {}
    for holder, key, path in places:
        public_id = holder.get(key)
        if not isinstance(public_id, str) or not has_container_form(public_id):
            continue
        kept = ports.owned_ids.read_container_id(bound_to, public_id)
        if kept is None:
            return Refuse(ResponseNotFound("You have no container with this id.", param=path))
        holder[key] = kept.id
        containers[kept.id] = kept.provider
    return containers


def _containers(dialect: str, body: Mapping[str, Any]) -> Iterator[_Place]:
    """Yield each object that may have the id of a container."""
    for tool, path in declared_tools(dialect, body):
        if isinstance(tool, dict):
            yield tool, "container", f"{path}.container"
            for key in ("container", "environment"):
                if isinstance(tool.get(key), dict):
                    yield tool[key], _CONTAINER_ID, f"{path}.{key}.{_CONTAINER_ID}"
    items = body.get("input")
    for index, item in enumerate(items if isinstance(items, list) else ()):
        path = f"input[{index}]"
        yield item, _CONTAINER_ID, f"{path}.{_CONTAINER_ID}"
        if isinstance(item.get("environment"), dict):
            yield item["environment"], _CONTAINER_ID, f"{path}.environment.{_CONTAINER_ID}"
        for number, part in enumerate(_objects(item.get("content"))):
            for place, annotation in enumerate(_objects(part.get("annotations"))):
                yield annotation, _CONTAINER_ID, f"{path}.content[{number}].annotations[{place}].{_CONTAINER_ID}"


def _public_ids(bound_to: bytes, ports: Ports) -> Any:
    ids = ports.owned_ids

    def public_id(provider: str, model: str, upstream_id: str) -> str:
        if upstream_id.startswith(_RESPONSE_PREFIX):
            return ids.response_id(bound_to, KeptObject(provider, model, upstream_id))
        return ids.item_id(bound_to, upstream_id)

    return public_id


def _left_out(body: Mapping[str, Any], allowed: frozenset[str]) -> tuple[str, ...]:
    """Return the prefixes of the hosted tools that are left out. A tool that the call requires is refused instead."""
    if ALL_TOOLS in allowed:
        return ()
    choice = body.get("tool_choice")
    required = choice.get("type") if isinstance(choice, dict) else None
    if isinstance(required, str) and required.startswith(LEFT_OUT):
        return ()
    return tuple([prefix for prefix in LEFT_OUT if TOOLS + prefix not in allowed])


def _resolve_items(items: Any, bound_to: bytes, ports: Ports) -> frozenset[str] | Refuse:
    """Replace the public ids of items by the provider's. Return the provider's ids of references: an item without
    content that has only an id is a reference, and the provider would read its content for anyone who knows the id."""
    references: set[str] = set()
    if not isinstance(items, list):
        return NO_OPTIONS.references
    for index, item in enumerate(items):
        public_id = item.get("id")
        has_id = isinstance(public_id, str)
        answers = not _ANSWERING_FIELDS.isdisjoint(item)
        # Most items have no ids.
        if not has_id and not answers:
            continue
        if answers:
            _resolve_answered_ids(item, bound_to, ports)
        if not has_id:
            continue
        kind = kind_of(item)
        upstream_id = ports.owned_ids.read_item_id(bound_to, public_id)
        if upstream_id is not None:
            item["id"] = upstream_id
            if kind == "item_reference" or (kind in _CONTENT_FIELDS and not item.get(_CONTENT_FIELDS[kind])):
                references.add(upstream_id)
        elif kind == "reasoning" and not item.get("encrypted_content"):
            # Its summary remains.
            del item["id"]
        elif (kind == "item_reference" and has_item_form(public_id)) or (
            kind == "image_generation_call" and not item.get("result")
        ):
            return Refuse(ResponseNotFound("You have no item with this id.", param=f"input[{index}].id"))
    return frozenset(references)


def _resolve_answered_ids(item: dict[str, Any], bound_to: bytes, ports: Ports) -> None:
    """Replace the public ids that an item answers: of a request for approval, and of safety checks."""
    checks = [check for field in _SAFETY_CHECKS for check in _objects(item.get(field))]
    for holder, field in [(item, _APPROVAL), *((check, "id") for check in checks)]:
        public_id = holder.get(field)
        upstream_id = ports.owned_ids.read_item_id(bound_to, public_id) if isinstance(public_id, str) else None
        if upstream_id is not None:
            holder[field] = upstream_id


def _objects(values: Any) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []
