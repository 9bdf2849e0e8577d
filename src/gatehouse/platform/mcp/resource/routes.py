"""Metadata of the paths of MCP servers. It is public and the same for every name, so that it does not reveal which
servers exist."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Response

from gatehouse.engine.mcp.serving import ALL, METADATA, SCOPE
from gatehouse.foundation.errors import NotFound
from gatehouse.platform.access.openid.service import issuer
from gatehouse.platform.live import resources
from gatehouse.platform.mcp.resource.schemas import ResourceMetadata
from gatehouse.platform.request.ports import Host, TheHost

router = APIRouter(tags=["MCP servers"])

_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {404: {"description": "PUBLIC_URL is not set, or no such path."}}


class UnknownMcpResource(NotFound):
    message = "There is no protected resource at this path."


@router.get(METADATA + ALL, response_model=ResourceMetadata, responses=_RESPONSES)
async def mcp_metadata(response: Response, host: TheHost) -> ResourceMetadata:
    """Returns the metadata of `/mcp` as a protected resource (RFC 9728). Requires the setting PUBLIC_URL."""
    return _metadata(response, host, ALL)


@router.get(METADATA + ALL + "/{server}", response_model=ResourceMetadata, responses=_RESPONSES)
async def mcp_server_metadata(
    response: Response, host: TheHost, server: Annotated[str, Path(description="The name of an MCP server.")]
) -> ResourceMetadata:
    """Returns the metadata of `/mcp/{server}` as a protected resource (RFC 9728), whether or not there is such a
    server. Requires the setting PUBLIC_URL."""
    return _metadata(response, host, f"{ALL}/{server}")


def _metadata(response: Response, host: Host, path: str) -> ResourceMetadata:
    """Return the metadata of the resource at `path`. Raises `NoPublicAddress`, `UnknownMcpResource`."""
    name = issuer(host)
    if not resources.covers(path, path):
        raise UnknownMcpResource
    response.headers["Cache-Control"] = "public, max-age=300"
    return ResourceMetadata(
        resource=resources.identifier(name, path),
        authorization_servers=[name],
        # The authorization endpoint requires `openid`.
        scopes_supported=["openid", SCOPE],
        bearer_methods_supported=["header"],
        resource_name="Gatehouse MCP gateway",
    )
