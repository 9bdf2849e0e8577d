"""Caches answers to identical requests, if the routing policy enables the cache (docs/response-cache.md).

The cache is searched after all other checks have passed, and after the budgets have counted the call. A successful
answer is stored when it is complete. The provider's original answer is stored. DLP inspects it at each use, and
restores the values of the current request's labels.
"""

import hashlib
from collections.abc import AsyncIterator, Coroutine
from functools import partial
from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.conversion import lost
from gatehouse.engine.conversation.dialects import TRAITS
from gatehouse.engine.conversation.endings import ended_normally
from gatehouse.engine.exchange import Admitted, Cacheable, CachedAnswer, CallRequest, CollectedAnswer, Exchange
from gatehouse.engine.ports import Ports
from gatehouse.engine.providers import Reply, dropped_fields
from gatehouse.engine.stages.candidates.kill_switch import was_removed
from gatehouse.engine.verdict import ALLOW, Refuse, Verdict
from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.secrets.owned_ids import CONTAINER_PREFIX

#: Largest request that is looked up and largest answer that is stored. Hashing or sealing larger ones would delay other
#: requests.
MAX_CACHED_BYTES: Final = 1024**2

#: Format of the entries: the names of the parts that the answer lacks, as in the header, a line break, and the answer.
#: Part of the key.
_FORMAT: Final = "names of lost parts, answer"
_SEPARATOR: Final = b"\n"
_CONTAINER_SIGN: Final = CONTAINER_PREFIX.encode()

_encoder = msgspec.json.Encoder()


def look(x: Admitted, ports: Ports) -> Verdict | Coroutine[Any, Any, Verdict | Cacheable]:
    """Return the call with its cached answer, or `ALLOW` if the cache is not used."""
    choice = x.routed.choice
    if choice is None or not choice.policy.cache_ttl_seconds:
        return ALLOW
    if not TRAITS[x.call_request.call.dialect].is_cacheable:
        return ALLOW
    options = x.call_request.call.options
    if options.keeps or options.previous is not None or options.references or options.containers:
        # The answer depends on what the provider keeps, or has ids that are bound to the caller.
        return ALLOW
    if x.call_request.body_bytes > MAX_CACHED_BYTES:
        return ALLOW
    return _look(x, choice.policy.cache_ttl_seconds, ports)


async def _look(x: Admitted, seconds: int, ports: Ports) -> Verdict | Cacheable:
    directives = _directives(x.call_request)
    if "no-store" in directives:
        return ALLOW
    key = _key(x)
    entry = None if "no-cache" in directives else await ports.cache.get(key)
    cached = None
    try:
        is_permitted = entry is not None and await _may_still(x, ports)
    except Unavailable as error:
        return Refuse(error)
    if entry is not None and is_permitted:
        names, _, answer = entry.partition(_SEPARATOR)
        cached = CachedAnswer(answer, tuple(filter(None, names.decode().split(","))))
    return Cacheable(admitted=x, key=key, seconds=seconds, cached=cached, collected=CollectedAnswer())


def again(x: Cacheable) -> Reply | None:
    """Return the cached answer as a reply, or None if there is none."""
    if x.cached is None:
        return None
    call, (answer, lost_parts) = x.admitted.call_request.call, x.cached
    dropped = dropped_fields(call, x.admitted.chain[0])
    return Reply.again(answer, stream=call.stream, dropped=dropped, lost_parts=lost_parts)


def watch(x: Cacheable, reply: Reply) -> Reply:
    """Collect the answer of the first choice of the route while it is delivered. The answer of a fallback is not
    cached, because another provider gave it."""
    if reply.status != 200:
        return reply
    if reply.events is None:
        x.collected.blocks, x.collected.lost_parts = [reply.body or b""], reply.lost_parts
        return reply
    return reply.observed(partial(_noted, reply=reply, collected=x.collected))


def keep(x: Exchange, ports: Ports) -> None:
    """Store the answer if it is complete and was delivered."""
    cacheable = x.cacheable
    if cacheable is None or not cacheable.collected.blocks or x.outcome != "success":
        return
    call, collected = cacheable.admitted.call_request.call, cacheable.collected
    answer = b"".join(collected.blocks)
    if call.options.public_container is not None and _CONTAINER_SIGN in answer:
        # The id of the container is bound to the caller.
        return
    if len(answer) <= MAX_CACHED_BYTES and ended_normally(call.dialect, answer, stream=call.stream):
        entry = lost.header(collected.lost_parts).encode() + _SEPARATOR + answer
        ports.cache.put(cacheable.key, entry, cacheable.seconds)


def _directives(x: CallRequest) -> set[str]:
    """Return the directives in the client's `Cache-Control` header."""
    header = x.identified.received.headers.get("cache-control")
    return set() if header is None else {word.strip().lower() for word in header.split(",")}


def _key(x: Admitted) -> bytes:
    """Return the cache key: a hash of everything that the answer depends on and of the callers who may receive it. A
    change of the policy changes the key."""
    call, identified, first = x.call_request.call, x.call_request.identified, x.chain[0]
    material = (
        _FORMAT,
        identified.policy.tenant_id,
        identified.policy.revision,
        sorted(group.hex for group in identified.caller.groups),
        first.provider.id,
        first.model.id,
        call.dialect,
        x.output_limit,
        sorted(call.headers.items()),
        # Only the top level is sorted, because the order of fields in a schema determines their order in the answer.
        sorted(call.body.items()),
    )
    return hashlib.blake2b(_encoder.encode(material), digest_size=32).digest()


async def _may_still(x: Admitted, ports: Ports) -> bool:
    """Return whether an attempt would still be allowed. The permission may have changed while the request waited. If it
    was revoked, the attempt refuses the request with the reason."""
    identified = x.call_request.identified
    await ports.switches.in_touch()
    return (
        ports.switches.up_to_date()
        and not ports.switches.switched_off(identified.policy.tenant_id, x.chain[0])
        and not was_removed(x.call_request, x.chain[0])
        and ports.credentials.still_good(identified.caller)
    )


async def _noted(events: AsyncIterator[bytes], reply: Reply, collected: CollectedAnswer) -> AsyncIterator[bytes]:
    size = 0
    async for block in events:
        size += len(block)
        collected.lost_parts = reply.lost_parts
        if size > MAX_CACHED_BYTES:
            collected.blocks.clear()
        else:
            collected.blocks.append(block)
        yield block
