"""Data-loss prevention for answers, both whole and streamed (docs/dlp.md)."""

from time import perf_counter
from typing import Any

import msgspec

from gatehouse.engine.conversation.dialect import Dialect
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.view import without_logprobs
from gatehouse.engine.dlp.body import inspect_answer, write_texts
from gatehouse.engine.dlp.decide import Hit
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.dlp.streams.stream import StreamGuard
from gatehouse.engine.exchange import CallRequest
from gatehouse.engine.ports import Ports
from gatehouse.engine.stages.calls.dlp_input import approval_hold
from gatehouse.engine.verdict import ALLOW, Hold, MaybeVerdict, Refuse, Rewrite, Verdict
from gatehouse.foundation.errors import Refusal

_decoder: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


def inspect(x: CallRequest, body: bytes, ports: Ports) -> MaybeVerdict:
    """Inspect a whole answer. Waits for an approval if a rule requires one."""
    if x.inspection is None or DIALECTS[x.call.dialect].operation != "chat":
        # Vectors contain no text, and in base64 they can resemble any pattern. Token counts are numbers.
        return ALLOW
    return _inspect(x, x.inspection, body, ports)


async def _inspect(x: CallRequest, inspection: Inspection, body: bytes, ports: Ports) -> Verdict:
    started = perf_counter()
    try:
        answer = _decoder.decode(body)
        without_logprobs(answer)
        examiner = Examiner(inspection, ports.detectors, ports.dlp, "output")
        channels, hit_to_approve = await inspect_answer(answer, examiner, len(body))
    except Refusal as refused:
        return Refuse(refused)
    finally:
        inspection.seconds += perf_counter() - started
    if hit_to_approve is not None:
        hold = approval_hold(hit_to_approve, inspection, ports, "output")
        if not await approved(x, hold, ports):
            return Refuse(hold.denied)
    return Rewrite(answer) if write_texts(channels) else ALLOW


async def of_error(x: CallRequest, error: Refusal, ports: Ports) -> Refusal:
    """Return a provider's error, whose message may quote the request. The message is removed if a rule would redact or
    block it. Raises `DlpUnavailable`."""
    if x.inspection is None or error.text == type(error).message:
        return error
    examiner = Examiner(x.inspection, ports.detectors, ports.dlp, "output")
    [findings] = await examiner.examine([error.text])
    if x.inspection.decide(findings, "output").edits:
        x.inspection.settle_prompts("cancelled")
        error.text = type(error).message
    return error


def guard(x: CallRequest, dialect: Dialect, ports: Ports) -> StreamGuard | None:
    """Return the inspection of a stream, or None if DLP is off and the bytes of the stream pass unchanged."""
    if x.inspection is None:
        return None
    return StreamGuard(dialect, Examiner(x.inspection, ports.detectors, ports.dlp, "output"))


def stream_hold(x: CallRequest, hit: Hit, ports: Ports) -> Hold:
    """Return the verdict that holds a stream until a person has decided about the finding."""
    assert x.inspection is not None
    return approval_hold(hit, x.inspection, ports, "output")


async def approved(x: CallRequest, hold: Hold, ports: Ports) -> bool:
    """Wait for the decision, and record it. A request that is cancelled while it waits counts as not approved. Token
    counts are never approved: no approval is requested for them."""
    decision = False
    try:
        if DIALECTS[x.call.dialect].operation != "count_tokens":
            decision = await ports.approvals.decision(x, hold.ask)
    finally:
        if hold.settled is not None:
            hold.settled(decision)
    return decision
