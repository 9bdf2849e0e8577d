"""Errors of model calls, for the client.

BadRequest
├── MalformedBody     not JSON, or not a JSON object
├── NestedTooDeep     deeper than `decoding.MAX_DEPTH`
├── InvalidField      a field is missing or invalid; `param` identifies it
├── ContextTooLong    the request exceeds the provider's limit for this model
├── FilteredUpstream  the provider's content filter refuses the request
├── ResponsesApiRequired  the operation needs a provider with the Responses API
└── RefusedUpstream   the provider refuses the request
NotFound
├── ResponseNotFound  the caller has no such response
└── UnknownUpstream   the provider does not have this model
"""

from gatehouse.foundation.errors import BadRequest, NotFound


class MalformedCall(BadRequest):
    code = "invalid_json"
    message = "The body is not a JSON object."


class NestedTooDeep(BadRequest):
    code = "nested_too_deep"
    message = "The body is nested too deeply."


class InvalidField(BadRequest):
    code = "invalid_value"

    def __init__(self, param: str, message: str) -> None:
        super().__init__(message, param=param)


class ContextTooLong(BadRequest):
    code = "context_length_exceeded"
    message = "The request is longer than the model's context."


class FilteredUpstream(BadRequest):
    code = "content_filter"
    message = "The provider's content filter does not permit this request."


class RefusedUpstream(BadRequest):
    code = "provider_refused_request"
    message = "The provider does not accept this request."


class UnknownUpstream(NotFound):
    code = "model_not_found"
    message = "The provider does not have this model."


class NotConvertible(ValueError):
    """A provider's answer does not conform to its dialect. The text is for records, never for a client."""


class ResponseNotFound(NotFound):
    """The caller has no response or item with this id that a provider keeps."""

    code = "response_not_found"
    message = "You have no response with this id."


class ResponsesApiRequired(BadRequest):
    """The operation needs a provider with the Responses API."""

    code = "responses_api_required"
    message = "This model's provider has no Responses API, which this operation needs. Name a model of one that has it."
