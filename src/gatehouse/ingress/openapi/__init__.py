"""The gateway's paths for the OpenAPI document. They are plain ASGI, so FastAPI does not describe them.

paths    the operations, each with examples, all response statuses and headers
schemas  request and response bodies. Only fields that the gateway reads are described in detail: all others go to the
         provider or come from it unchanged
"""

from gatehouse.ingress.openapi.paths import gateway_paths
from gatehouse.ingress.openapi.schemas import SCHEMAS, SECURITY_SCHEMES

__all__ = ["SCHEMAS", "SECURITY_SCHEMES", "gateway_paths"]
