"""Data-loss prevention for requests. Inspects every text of the call, in every dialect (docs/dlp.md)."""

from time import perf_counter

from gatehouse.detection.documents.output import Unread
from gatehouse.engine.conversation.call import FilePart
from gatehouse.engine.conversation.slots import Slot
from gatehouse.engine.dlp.body import apply_replacements, inspect_request, note_unread
from gatehouse.engine.dlp.decide import Hit, TierFindings, decide
from gatehouse.engine.dlp.errors import violation
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.dlp.turns import WorkOwner
from gatehouse.engine.exchange import CallRequest, Identified
from gatehouse.engine.ports import Ports
from gatehouse.engine.stages.candidates.route import AUTO
from gatehouse.engine.verdict import ALLOW, ApprovalResult, Ask, Hold, MaybeVerdict, Refuse, Verdict
from gatehouse.foundation.errors import Refusal
from gatehouse.foundation.identity import Caller


def owner(caller: Caller) -> WorkOwner:
    """Return the user and organization that are charged for the inspection of long texts."""
    return WorkOwner(caller.tenant_id, caller.user_id or caller.client_id or caller.outpost_id)


def new_inspection(x: Identified) -> Inspection:
    """Return the inspection of a new call."""
    return Inspection(
        x.policy.dlp, x.caller.groups, last_label_numbers=x.host.last_label_numbers, owner=owner(x.caller)
    )


def name(x: CallRequest, ports: Ports) -> MaybeVerdict:
    """Redact the name of a model that is not in the catalog. The name can be any text, and appears in the error and in
    the record. It is not sent to a provider, so a finding neither blocks nor holds the call. The call is refused
    if the inspection's queue is full, or if `DLP_FAIL_MODE` is `closed` and the name cannot be inspected."""
    inspection, named = x.inspection, x.call.model
    if inspection is None or named in {"", AUTO} or x.identified.policy.knows(named):
        return ALLOW
    return _name(x, inspection, ports)


async def _name(x: CallRequest, inspection: Inspection, ports: Ports) -> Verdict:
    groups, named = x.identified.caller.groups, x.call.model
    # The name has a time budget of its own.
    search = Inspection(inspection.policy, groups, owner=inspection.owner)
    try:
        findings = TierFindings(await Examiner(search, ports.detectors, ports.dlp, "input").find_patterns(named))
    except Refusal as refused:
        return Refuse(refused)
    if edits := decide(inspection.policy, findings, groups).edits:
        x.call.model = apply_replacements(Slot({}, "model", named), inspection.replacements(edits, named))
    return ALLOW


def inspect(x: CallRequest, ports: Ports) -> MaybeVerdict:
    """Inspect the body of the call, and redact it in place."""
    return ALLOW if x.inspection is None else _inspect(x, x.inspection, ports)


async def _inspect(x: CallRequest, inspection: Inspection, ports: Ports) -> Verdict:
    inspection.action = inspection.action or "ALLOW"
    started = perf_counter()
    if not x.call.exact:
        # Decoding has dropped digits of a long number, so DLP cannot inspect them. Send the decoded number instead of
        # the client's bytes.
        x.call.raw_body = x.call.unchanged_body
    headers = dict(x.call.headers)
    try:
        examiner = Examiner(inspection, ports.detectors, ports.dlp, "input")
        if x.call.files:
            note_unread([Unread(_kind(file), "no_text") for file in x.call.files], examiner)
        hit_to_approve = await inspect_request(x.call.body, examiner, headers, x.body_bytes)
        x.call.headers = headers
    except Refusal as refused:
        return Refuse(refused)
    finally:
        inspection.seconds += perf_counter() - started
    return ALLOW if hit_to_approve is None else approval_hold(hit_to_approve, inspection, ports, "input")


def _kind(file: FilePart) -> str:
    return "audio" if file.name == "file" else "image"


def approval_hold(hit: Hit, inspection: Inspection, ports: Ports, direction: str) -> Hold:
    """Return the verdict that holds the request until a person has decided about the finding."""

    def settled(result: ApprovalResult) -> None:
        approved = result == "approved"
        inspection.note_action("PROMPT" if approved else "CANCEL")
        inspection.settle_prompts("approved" if approved else "cancelled")

    ask = Ask(
        reason=f"{hit.rule.name} found {hit.rule.entity_type}",
        rule_id=hit.rule.id,
        rule_name=hit.rule.name,
        entity_types=(hit.rule.entity_type,),
        direction=direction,
    )
    message = f"The content requires an approval ({hit.rule.name}), which was denied or not granted in time."
    return Hold(ask, violation(hit, "CANCEL", ports.dlp.block_status, message), settled)
