"""Every audit action there is, each with what it says. `Change.record` takes no other (GET /v1/audit/actions)."""

from typing import Final

ACTIONS: Final[dict[str, str]] = {
    "gateway.request": "A model call went through the gateway, or was refused by it.",
    "api_key.created": "A user made an API key.",
    "api_key.updated": "An API key was enabled or disabled.",
    "api_key.deleted": "An API key was removed.",
}
