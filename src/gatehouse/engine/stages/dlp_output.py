"""Data-loss prevention on what comes back, whole or streamed (reference 3, DLP rule)."""

from time import perf_counter
from typing import Any

import msgspec

from gatehouse.engine.conversation.dialect import Dialect
from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.conversation.view import without_logprobs
from gatehouse.engine.dlp.body import inspect_answer, write
from gatehouse.engine.dlp.decide import Hit
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.dlp.stream import StreamGuard
from gatehouse.engine.exchange import Asked
from gatehouse.engine.ports import Ports
from gatehouse.engine.stages.dlp_input import held
from gatehouse.engine.verdict import ALLOW, Hold, MaybeVerdict, Refuse, Rewrite, Verdict
from gatehouse.foundation.errors import Refusal

_decoder: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


def inspect(x: Asked, body: bytes, ports: Ports) -> MaybeVerdict:
    """Of a whole answer. Waits for a person where a rule asks for one."""
    if x.inspection is None or DIALECTS[x.call.dialect].operation == "embeddings":
        # Vectors, which as base64 look like anything.
        return ALLOW
    return _inspect(x, x.inspection, body, ports)


async def _inspect(x: Asked, inspection: Inspection, body: bytes, ports: Ports) -> Verdict:
    started = perf_counter()
    try:
        answer = _decoder.decode(body)
        without_logprobs(answer)
        examiner = Examiner(inspection, ports.detectors, ports.dlp, "output")
        channels, asks = await inspect_answer(answer, examiner, len(body))
    except Refusal as refused:
        return Refuse(refused)
    finally:
        inspection.seconds += perf_counter() - started
    if asks is not None:
        hold = held(asks, inspection, ports, "output")
        if not await approved(x, hold, ports):
            return Refuse(hold.denied)
    return Rewrite(answer) if write(channels) else ALLOW


async def of_error(x: Asked, error: Refusal, ports: Ports) -> Refusal:
    """A provider's words about a request, which may quote anything: without them where a rule would not let them pass.
    Raises `DlpUnavailable`."""
    if x.inspection is None or error.text == type(error).message:
        return error
    examiner = Examiner(x.inspection, ports.detectors, ports.dlp, "output")
    [found] = await examiner.whole([error.text])
    if x.inspection.decide(found, "output").edits:
        x.inspection.settle_prompts("cancelled")
        error.text = type(error).message
    return error


def guard(x: Asked, dialect: Dialect, ports: Ports) -> StreamGuard | None:
    """What a stream has to pass. None: its bytes go on untouched."""
    if x.inspection is None:
        return None
    return StreamGuard(dialect, Examiner(x.inspection, ports.detectors, ports.dlp, "output"))


def asked_about(x: Asked, hit: Hit, ports: Ports) -> Hold:
    assert x.inspection is not None
    return held(hit, x.inspection, ports, "output")


async def approved(x: Asked, hold: Hold, ports: Ports) -> bool:
    """Waits for the decision, and notes it: where nobody waits for it any more, there was none."""
    decision = False
    try:
        decision = await ports.approvals.decision(x, hold.ask)
    finally:
        if hold.settled is not None:
            hold.settled(decision)
    return decision
