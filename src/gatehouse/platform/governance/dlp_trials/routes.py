"""The trials' endpoints (reference 3, Endpoints, DLP rules: test, evaluate; replay)."""

from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from gatehouse.engine.stages.dlp_input import owner
from gatehouse.platform.callers import RESPONSES, Admin
from gatehouse.platform.governance.dlp_fields import TheRecognisers
from gatehouse.platform.governance.dlp_trials import drafting, evaluating, replaying, samples, testing
from gatehouse.platform.governance.dlp_trials.schemas import (
    Draft,
    Evaluation,
    NewEvaluation,
    NewSample,
    NewTest,
    Replayed,
    TestResult,
)
from gatehouse.platform.governance.replays import recorded
from gatehouse.platform.governance.replays.schemas import Recorded
from gatehouse.platform.ports import TheHost
from gatehouse.platform.requests import InParts

router = APIRouter(prefix="/api/admin/dlp-rules", tags=["DLP"], responses=RESPONSES)


@router.post("/test", response_model=TestResult)
async def test_dlp_pattern(caller: Admin, body: NewTest, host: TheHost, recognisers: TheRecognisers) -> TestResult:
    """What a pattern, or the entities tier, finds in a text. A bad pattern is told in `error`."""
    return await testing.test(host.ports, body, recognisers)


@router.post("/evaluate", response_model=Evaluation, responses={404: {"description": "Not in your organization."}})
async def evaluate_dlp(caller: Admin, body: NewEvaluation, parts: InParts, host: TheHost) -> Evaluation:
    """What is done about a text, by the policy in force, and why."""
    return await evaluating.evaluate(parts, host.ports, body)


_DRAFT: Final = Draft.model_json_schema()
_SAMPLE: Final = {"anyOf": [{"type": "string"}, NewSample.model_json_schema()]}
#: Read by hand, since it comes in two forms, and the file must never be spooled to a disk.
_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {
                        **_DRAFT["properties"],
                        "samples": {"type": "array", "items": _SAMPLE},
                        "recorded": Recorded.model_json_schema(),
                    },
                    "additionalProperties": False,
                }
            },
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {
                            "type": "string",
                            "format": "binary",
                            "description": "JSON lines: a text, or an object with `text` and perhaps `id`.",
                            "example": '{"id": "ticket-17", "text": "My card is 4111 1111 1111 1111."}',
                        },
                        "draft": {"type": "string", "description": "JSON: `rules`, `suppressions`."},
                    },
                },
            },
        },
    }
}


@router.post(
    "/replay",
    response_model=Replayed,
    openapi_extra=_BODY,
    responses={413: {"description": "Too many bytes."}, 429: {"description": "A replay is running on this worker."}},
)
async def replay_dlp_draft(
    caller: Admin, request: Request, parts: InParts, host: TheHost, recognisers: TheRecognisers
) -> Response:
    """What a draft of your rules would do about the texts that you send, or about samples of your organization's own
    requests (`recorded`), beside what is in force. Stores nothing; who reads samples so is in the audit chain."""
    draft, wanted = await samples.read(request)
    snapshot = await host.ports.policies.current(parts.tenant_id)
    policy = await drafting.compiled(draft, snapshot, recognisers)
    if isinstance(wanted, Recorded):
        kept = await recorded.read(parts, host.sealer, wanted, draft="dlp_rules", by="labels")
        texts = [replaying.of_sample(each) for each in kept]
    else:
        texts = [replaying.Examinee((each.text,), each.id) for each in wanted]
    told = await replaying.replay(host.ports, policy, snapshot.dlp, texts, owner=owner(caller))
    return Response(told, media_type="application/json")
