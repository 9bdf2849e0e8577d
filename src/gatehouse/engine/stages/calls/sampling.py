"""Stores samples: the texts of a share of an organization's requests and answers before DLP changes them. Drafts of
rules can be replayed on them (docs/dlp-replay.md).

A request is chosen, and its texts are copied, when it arrives. All other work is done after the end of the request, in
a task of its own.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import msgspec
import structlog

from gatehouse.engine.conversation import sse
from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.dialects import DIALECTS, TRAITS
from gatehouse.engine.conversation.slots import Slot, slots_in_steps
from gatehouse.engine.conversation.uninspected import IN_ANSWERS
from gatehouse.engine.conversation.view import Unreadable, without_logprobs
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.dlp.steps import Steps
from gatehouse.engine.dlp.turns import SCHEDULER
from gatehouse.engine.exchange import CallRequest, Exchange
from gatehouse.engine.ports import Ports, Sampler
from gatehouse.engine.providers import Reply
from gatehouse.engine.records import samples
from gatehouse.engine.records.outcome import Sampled, encode
from gatehouse.engine.records.samples import CallSample, Contents
from gatehouse.engine.stages.calls.dlp_input import owner
from gatehouse.engine.verdict import ALLOW, MaybeVerdict, Verdict
from gatehouse.foundation.errors import Refusal
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.tasks import cancel_all
from gatehouse.policy.dlp.compiled import DLP_ACTION_STRENGTH

log = structlog.get_logger(__name__)

#: Maximum number of texts and of characters that are stored of a request, and of an answer. Further text is left out.
MAX_TEXTS: Final = 200
MAX_CHARACTERS: Final = 100_000
#: Longest answer that is stored.
MAX_ANSWER_BYTES: Final = 1024**2

#: Time limit for samples in progress when the process stops.
_STOP_TIMEOUT_SECONDS: Final = 2.0

#: Tasks that seal samples. The references keep the tasks from being garbage-collected.
RUNNING: Final[set[asyncio.Task[None]]] = set()

_decoder: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


def choose(x: CallRequest, ports: Ports) -> MaybeVerdict:
    sample, policy = x.sample, x.identified.policy
    if sample is None or ports.sampler is None or random.random() >= policy.sample_share:  # noqa: S311 - a share, no secret
        return ALLOW
    return _choose(x, sample) if ports.sampler.admits(policy.tenant_id) else ALLOW


async def _choose(x: CallRequest, sample: CallSample) -> Verdict:
    with _harmless(x):
        sample.texts = await SCHEDULER.run(owner(x.identified.caller), _texts(x.call.body))
    return ALLOW


def note_answer(x: CallRequest, body: bytes, ports: Ports) -> MaybeVerdict:
    """Store a whole answer that contains text."""
    sample = x.sample
    if sample is not None and sample.texts and len(body) <= MAX_ANSWER_BYTES and _has_text(x.call):
        is_text = x.call.answer_form == "text"
        sample.answer = [msgspec.json.encode({"text": body.decode()}) if is_text else body]
    return ALLOW


def _has_text(call: ModelCall) -> bool:
    return TRAITS[call.dialect].has_output_text


def watch(x: CallRequest, reply: Reply) -> Reply:
    """Collect the events of a stream while they arrive."""
    sample = x.sample
    if sample is None or not sample.texts or reply.events is None or not _has_text(x.call):
        return reply
    sample.answer = []
    return reply.observed(partial(_noted, sample=sample))


async def _noted(events: AsyncIterator[bytes], sample: CallSample) -> AsyncIterator[bytes]:
    size = 0
    async for block in events:
        size += len(block)
        if size > MAX_ANSWER_BYTES:
            sample.answer = None
        elif sample.answer is not None:
            sample.answer.append(block)
        yield block


def keep(x: Exchange, ports: Ports) -> None:
    sample = None if x.call_request is None else x.call_request.sample
    if x.call_request is not None and sample is not None and sample.texts and ports.sampler is not None:
        task = asyncio.get_running_loop().create_task(_keep(x.call_request, sample, ports.sampler, ports))
        RUNNING.add(task)
        task.add_done_callback(RUNNING.discard)


async def wait() -> None:
    """Wait until the samples in progress are in the journal. Those that take too long are dropped."""
    if RUNNING:
        _, unfinished = await asyncio.wait(RUNNING, timeout=_STOP_TIMEOUT_SECONDS)
        if unfinished:
            log.warning("sampling.dropped", samples=len(unfinished))
            await cancel_all(*unfinished)


async def _keep(x: CallRequest, sample: CallSample, sampler: Sampler, ports: Ports) -> None:
    identified = x.identified
    received, caller, tenant_id = identified.received, identified.caller, identified.policy.tenant_id
    with _harmless(x):
        answer: list[str] | None = None
        if sample.answer is not None:
            steps = _stream_texts(sample.answer, x) if x.call.stream else _answer_texts(sample.answer)
            answer = await SCHEDULER.run(owner(caller), steps)
        contents = Contents(
            texts=sample.texts,
            answer=answer,
            dlp_action=_dlp_action(x.inspection, {"input"} if answer is None else {"input", "output"}),
            groups=list(caller.groups),
            facts=sample.facts,
            policy_action=None if sample.facts is None else sample.policy_action,
        )
        sample_id = new_id()
        sealed_key, sealed = sampler.seal(tenant_id, sample_id, samples.encode(contents))
        entry = Sampled(
            id=sample_id,
            tenant_id=tenant_id,
            timestamp=received.received_at,
            request_id=received.request_id,
            actor_type=caller.kind,
            user_id=caller.user_id,
            api_key_id=None,
            client_id=caller.client_id,
            ip="",
            requested_model=x.call.model,
            provider=None,
            model_id=None,
            sealed_key=sealed_key,
            contents=sealed,
            texts=len(sample.texts),
            characters=sum(map(len, sample.texts)) + sum(map(len, answer or ())),
            answer_texts=None if answer is None else len(answer),
        )
        await ports.journal.append(encode(entry))


@contextmanager
def _harmless(x: CallRequest) -> Iterator[None]:
    """Suppress errors, because a request must not fail when its sample cannot be stored."""
    try:
        yield
    except Refusal:
        # Too many long texts wait, or the journal is full. Other requests report these errors.
        pass
    except Exception:
        log.exception("sampling.fault", request_id=x.identified.received.request_id)


def _dlp_action(inspection: Inspection | None, directions: set[str]) -> str:
    """Return the strongest action of the events in these directions."""
    events = inspection.events() if inspection is not None else ()
    actions = (event.action for event in events if event.direction in directions)
    return max(actions, key=DLP_ACTION_STRENGTH.__getitem__, default="allow")


def _stream_texts(blocks: Sequence[bytes], x: CallRequest) -> Steps[list[str]]:
    """Return the complete texts of a stream, in the order in which they began."""
    dialect = DIALECTS[x.call.dialect]
    #: pieces by the name of the channel; a text that arrives in one piece has a number as its name
    texts: dict[str | int, list[str]] = {}
    for block in blocks:
        for event in sse.events(block):
            yield
            growth = dialect.growth(event)
            if growth is not None:
                texts.setdefault(growth[0], []).append(growth[1])
                continue
            try:
                view = dialect.view(event)
            except Unreadable:
                # The client received no text after this event.
                return _bounded(map("".join, texts.values()))
            for piece in view.pieces if view is not None else ():
                texts.setdefault(len(texts) if piece.whole else piece.channel, []).append(piece.slot.text)
    return _bounded(map("".join, texts.values()))


def _bounded(texts: Iterable[str]) -> list[str]:
    kept: list[str] = []
    remaining = MAX_CHARACTERS
    for text in texts:
        if text.strip():
            kept.append(text[:remaining])
            remaining -= len(text)
        if len(kept) == MAX_TEXTS or remaining <= 0:
            break
    return kept


def _answer_texts(blocks: Sequence[bytes]) -> Steps[list[str]]:
    answer = _decoder.decode(b"".join(blocks))
    without_logprobs(answer)
    return (yield from _texts(answer, answer=True))


def _texts(body: dict[str, Any], *, answer: bool = False) -> Steps[list[str]]:
    texts: list[str] = []
    remaining = MAX_CHARACTERS
    for slot in slots_in_steps(body, answer=answer):
        yield
        if isinstance(slot, Slot) and slot.text.strip() and not (answer and slot.key in IN_ANSWERS):
            texts.append(slot.text)
            remaining -= len(slot.text)
            if len(texts) == MAX_TEXTS or remaining <= 0:
                break
    return _bounded(texts)
