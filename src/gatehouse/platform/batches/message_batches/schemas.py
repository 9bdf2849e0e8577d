"""Bodies of the endpoints of message batches, in Anthropic's form."""

from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from gatehouse.foundation.http.bodies import ResponseBody

#: The body of the creation in the OpenAPI document. The body is parsed without pydantic, so that the bytes of each call
#: remain unchanged.
CREATION_OPENAPI: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["requests"],
                    "properties": {
                        "requests": {
                            "type": "array",
                            "minItems": 1,
                            "items": {
                                "type": "object",
                                "additionalProperties": False,
                                "required": ["custom_id", "params"],
                                "properties": {
                                    "custom_id": {"type": "string", "minLength": 1, "maxLength": 256},
                                    "params": {
                                        "type": "object",
                                        "description": "The body of `POST /v1/messages`.",
                                    },
                                },
                            },
                        }
                    },
                },
                "example": {
                    "requests": [
                        {
                            "custom_id": "first",
                            "params": {
                                "model": "sandbox/echo",
                                "max_tokens": 100,
                                "messages": [{"role": "user", "content": "Hello"}],
                            },
                        }
                    ]
                },
            }
        },
    }
}


class MessageRequestCounts(ResponseBody):
    processing: int
    succeeded: int
    errored: int
    canceled: int
    expired: int


class MessageBatch(ResponseBody):
    id: str = Field(examples=["msgbatch_0197f0c2a1b47c3f8f0a5f0e6f3f1d2c"])
    type: Literal["message_batch"] = "message_batch"
    processing_status: Literal["in_progress", "canceling", "ended"]
    request_counts: MessageRequestCounts
    created_at: datetime
    expires_at: datetime
    ended_at: datetime | None
    cancel_initiated_at: datetime | None
    archived_at: None = None
    results_url: Annotated[str | None, Field(description="URL of the results of an ended batch.")]
    cost_usd: Annotated[str, Field(description="Cost of the calls that have ended.", examples=["0.00125"])]


class MessageBatchList(ResponseBody):
    data: list[MessageBatch]
    first_id: str | None
    last_id: str | None
    has_more: bool


class DeletedMessageBatch(ResponseBody):
    id: str
    type: Literal["message_batch_deleted"] = "message_batch_deleted"
