"""Describes the gateway's paths in the OpenAPI document. FastAPI does not describe them, because they are plain ASGI.

paths    the operations with examples, response statuses and headers
schemas  the request and response bodies; only fields that the gateway reads are described in detail, because all other
         fields are passed on unchanged
surfaces the operations other than chats and embeddings, with their bodies
"""

from typing import Any, Final

from gatehouse.ingress.openapi import paths, schemas
from gatehouse.ingress.openapi.schemas import SECURITY_SCHEMES
from gatehouse.ingress.openapi.surfaces import SURFACE_SCHEMAS, surface_paths

SCHEMAS: Final = {**schemas.SCHEMAS, **SURFACE_SCHEMAS}


def gateway_paths() -> dict[str, Any]:
    """Return the path items of all operations of the gateway."""
    return {**paths.gateway_paths(), **surface_paths()}


__all__ = ["SCHEMAS", "SECURITY_SCHEMES", "gateway_paths"]
