"""Any server that speaks OpenAI's API under its own base URL, with or without a key."""

from gatehouse.engine.providers.kind import CredentialField
from gatehouse.engine.providers.wires import OPTIONAL_API_KEY, OpenAIWire


class OpenAICompatible(OpenAIWire):
    name = "openai_compatible"
    title = "OpenAI-compatible"
    type = "openai_compatible"
    responses_api = False
    credential_fields = (
        OPTIONAL_API_KEY,
        CredentialField(name="base_url", required=False, secret=False, form="url"),
    )
