"""Describes the gateway's paths in the OpenAPI document. FastAPI does not describe them, because they are plain ASGI.

paths    the operations with examples, response statuses and headers
schemas  the request and response bodies; only fields that the gateway reads are described in detail, because all other
         fields are passed on unchanged
"""

from gatehouse.ingress.openapi.paths import gateway_paths
from gatehouse.ingress.openapi.schemas import SCHEMAS, SECURITY_SCHEMES

__all__ = ["SCHEMAS", "SECURITY_SCHEMES", "gateway_paths"]
