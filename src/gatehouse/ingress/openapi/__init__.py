"""What the gateway's paths are, for an application's OpenAPI document: they are plain ASGI, so no framework knows them.

paths    the operations, each with examples, every status it answers with, and what its headers say
schemas  bodies and answers. Only what the gateway itself reads is described closely: what it passes on is the
         provider's, and unknown fields go through
"""

from gatehouse.ingress.openapi.paths import gateway_paths
from gatehouse.ingress.openapi.schemas import SCHEMAS, SECURITY_SCHEMES

__all__ = ["SCHEMAS", "SECURITY_SCHEMES", "gateway_paths"]
