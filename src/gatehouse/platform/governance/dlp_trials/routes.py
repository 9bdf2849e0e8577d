"""Endpoints of trials."""

from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from gatehouse.engine.stages.calls.dlp_input import owner
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
from gatehouse.platform.request.callers import RESPONSES, Admin
from gatehouse.platform.request.injected import InSplitTransactions
from gatehouse.platform.request.ports import TheHost

router = APIRouter(prefix="/api/admin/dlp-rules", tags=["DLP"], responses=RESPONSES)


@router.post("/test", response_model=TestResult)
async def test_dlp_pattern(caller: Admin, body: NewTest, host: TheHost, recognisers: TheRecognisers) -> TestResult:
    """Returns the matches of a pattern, or of the entities tier, in a text. `error` explains an invalid pattern."""
    return await testing.test(host.ports, body, recognisers)


@router.post(
    "/evaluate",
    response_model=Evaluation,
    responses={404: {"description": "The organization, group or user is not in your organization."}},
)
async def evaluate_dlp(
    caller: Admin, body: NewEvaluation, transactions: InSplitTransactions, host: TheHost
) -> Evaluation:
    """Returns the action of the active policy on a text, with a trace of the decision."""
    return await evaluating.evaluate(transactions, host.ports, body)


_DRAFT: Final = Draft.model_json_schema()
_SAMPLE: Final = {"anyOf": [{"type": "string"}, NewSample.model_json_schema()]}
#: OpenAPI description of the body. The route parses the body itself, because the body has two forms and an uploaded
#: file must never be spooled to disk.
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
                            "description": "JSON lines: a string, or an object with `text` and optionally `id`.",
                            "example": '{"id": "ticket-17", "text": "My card is 4111 1111 1111 1111."}',
                        },
                        "draft": {"type": "string", "description": "The draft as JSON: `rules`, `suppressions`."},
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
    caller: Admin, request: Request, transactions: InSplitTransactions, host: TheHost, recognisers: TheRecognisers
) -> Response:
    """Evaluates a draft of DLP rules on the texts in the body, or on samples of the organization's own requests
    (`recorded`), and compares it with the active policy. Stores nothing. The audit chain records the access to
    samples."""
    draft, selection = await samples.read(request)
    snapshot = await host.ports.policies.current(transactions.tenant_id)
    policy = await drafting.compile_draft(draft, snapshot, recognisers)
    if isinstance(selection, Recorded):
        stored = await recorded.read(transactions, host.sealer, selection, draft="dlp_rules", label_kind="labels")
        replay_samples = [replaying.from_recorded(sample) for sample in stored]
    else:
        replay_samples = [replaying.ReplaySample((sample.text,), sample.id) for sample in selection]
    content = await replaying.replay(host.ports, policy, snapshot.dlp, replay_samples, owner=owner(caller))
    return Response(content, media_type="application/json")
