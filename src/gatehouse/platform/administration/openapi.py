"""The OpenAPI document of the platform: FastAPI's document of administration, the paths of the gateway, security
requirements and error responses. An operation needs a credential if its signature declares a caller.
"""

from typing import Any, Final

from gatehouse.administration.application import Documentation
from gatehouse.ingress.openapi import SCHEMAS, SECURITY_SCHEMES, gateway_paths
from gatehouse.platform.administration import error_responses
from gatehouse.platform.request.callers import is_caller

#: The accepted security schemes. One of them is sufficient.
_REQUIREMENT: Final[dict[str, Any]] = {"security": [{name: []} for name in SECURITY_SCHEMES]}


def _complete(document: dict[str, Any]) -> dict[str, Any]:
    error_responses.complete(document)
    schemas = document["components"]["schemas"]
    duplicates = schemas.keys() & SCHEMAS.keys()
    if duplicates:
        raise ValueError(f"two schemas of one name: {', '.join(sorted(duplicates))}")
    schemas.update(SCHEMAS)
    # The gateway's paths come first, because most readers look for them.
    return {**document, "paths": {**gateway_paths(), **document["paths"]}}


DOCUMENTATION: Final = Documentation(
    security_schemes=SECURITY_SCHEMES,
    requirement_of=lambda dependency: _REQUIREMENT if is_caller(dependency) else None,
    complete=_complete,
)
