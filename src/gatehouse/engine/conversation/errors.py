"""What can be wrong with a model call, for the one who sent it.

BadRequest
├── MalformedBody     not JSON, or JSON that is no object
├── NestedTooDeep     deeper than `decoding.MAX_DEPTH`
├── InvalidField      one field is missing or wrong; `param` names it
├── ContextTooLong    the provider's limit for this model is passed
├── FilteredUpstream  the provider's content filter objects to it
└── RefusedUpstream   the provider objects to the request itself
NotFound
└── UnknownUpstream   the provider does not have this model
"""

from gatehouse.foundation.errors import BadRequest, NotFound


class MalformedBody(BadRequest):
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
    """What a provider sent is not what its dialect says. The text is for records, never for a client."""
