"""The type of callers of files and batches (users and OAuth clients that may call models), and their errors."""

from typing import Annotated, Any, Final

from fastapi import Depends, Request

from gatehouse.engine import pipeline
from gatehouse.engine.exchange import Identified, Received
from gatehouse.foundation.identity import Caller
from gatehouse.platform.request.callers import RESPONSES, scoped
from gatehouse.platform.request.ports import Host

#: any caller; a client, or a key with scopes, needs `chat:write`
ModelCaller = Annotated[Caller, Depends(scoped("chat:write"))]

#: The errors of all operations on files and batches (docs/errors.md).
BATCH_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    **RESPONSES,
    400: {"description": "A parameter, the form, the body or a line of the batch is not valid."},
    404: {"description": "You have no such file or batch, or it has expired."},
    409: {"description": "The state of the batch forbids the operation, or a limit of the organization is reached."},
    413: {"description": "The body is too large."},
    429: {"description": "A rate limit or a budget is exhausted."},
}


async def identified(request: Request, host: Host, caller: Caller) -> Identified:
    """Return the caller with the policy of their organization."""
    received: Received = request.scope["state"]["received"]
    return pipeline.obeyed(await pipeline.IDENTIFY_KNOWN(received, caller, host.ports, "chat:write"))
