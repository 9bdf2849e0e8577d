"""Bodies of the endpoints of batches, in OpenAI's form. Times are Unix times in seconds."""

from typing import Annotated, Literal

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody

Status = Literal["validating", "in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled"]
_KEY = Annotated[str, Field(min_length=1, max_length=64)]
_VALUE = Annotated[str, Field(max_length=512)]
Metadata = Annotated[dict[_KEY, _VALUE], Field(max_length=16, examples=[{"job": "nightly"}])]


class OutputExpiry(Body):
    anchor: Literal["created_at"]
    seconds: int = Field(ge=3600, le=2_592_000, examples=[86_400])


class NewBatch(Body):
    input_file_id: str = Field(max_length=64, examples=["file-0197f0c2a1b47c3f8f0a5f0e6f3f1d2c"])
    endpoint: Literal["/v1/chat/completions", "/v1/responses", "/v1/embeddings"]
    completion_window: Literal["24h"]
    metadata: Metadata | None = None
    output_expires_after: Annotated[
        OutputExpiry | None, Field(description="Lifetime of the files of results. Default: FILE_RETENTION_DAYS.")
    ] = None


class BatchError(ResponseBody):
    code: str | None
    message: str | None
    line: int | None = None
    param: str | None = None


class BatchErrors(ResponseBody):
    object: Literal["list"] = "list"
    data: list[BatchError]


class RequestCounts(ResponseBody):
    total: int
    completed: int
    failed: int


class InputTokensDetails(ResponseBody):
    cached_tokens: int


class OutputTokensDetails(ResponseBody):
    reasoning_tokens: int = 0


class BatchUsage(ResponseBody):
    input_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    total_tokens: int


class ModelBatch(ResponseBody):
    id: str = Field(examples=["batch_0197f0c2a1b47c3f8f0a5f0e6f3f1d2c"])
    object: Literal["batch"] = "batch"
    endpoint: str = Field(examples=["/v1/chat/completions"])
    errors: Annotated[BatchErrors | None, Field(description="Why a failed batch was stopped.")]
    input_file_id: str | None
    completion_window: Literal["24h"] = "24h"
    status: Status
    output_file_id: Annotated[str | None, Field(description="Results of the lines with the status 200.")]
    error_file_id: Annotated[str | None, Field(description="Results of all other lines.")]
    created_at: int
    in_progress_at: int | None
    expires_at: int
    finalizing_at: int | None
    completed_at: int | None
    failed_at: int | None
    expired_at: int | None
    cancelling_at: int | None
    cancelled_at: int | None
    request_counts: RequestCounts
    usage: Annotated[BatchUsage, Field(description="Tokens of the lines that have ended.")]
    cost_usd: Annotated[str, Field(description="Cost of the lines that have ended.", examples=["0.00125"])]
    metadata: dict[str, str] | None


class BatchList(ResponseBody):
    object: Literal["list"] = "list"
    data: list[ModelBatch]
    first_id: str | None
    last_id: str | None
    has_more: bool
