"""Errors of connections."""

from gatehouse.foundation.errors import BadRequest, NotFound, Unavailable


class McpConnectionNotFound(NotFound):
    message = "Connection not found"


class McpTokensUnavailable(Unavailable):
    code = "mcp_tokens_unavailable"
    message = "Your access token for the MCP server could not be read or renewed. Try again."


class ConsentRefused(BadRequest):
    """A consent failed. `reason` is a short code, which contains no text of the authorization server."""

    message = "The account was not connected."

    def __init__(self, reason: str) -> None:
        super().__init__(f"The account was not connected. {SENTENCES.get(reason, '')}".rstrip(), reason=reason)
        self.reason = reason


SENTENCES = {
    "access_denied": "You or the authorization server declined. You can start again.",
    "another_session": "The connection was begun in another session, has expired, or was used already. Start again.",
    "authorization_failed": "The authorization server reported an error.",
    "issuer_mismatch": "The answer comes from another authorization server.",
    "no_issuer": "An administrator must enter the issuer of the authorization server first.",
    "no_metadata": "The metadata of the authorization server could not be read.",
    "no_pkce": "The authorization server does not state that it supports PKCE with S256.",
    "server_changed": "An administrator has changed the server meanwhile. Start again.",
    "token_refused": "The authorization server refused to issue tokens.",
    "token_unavailable": "The authorization server did not answer, or its answer is not valid. Start again.",
}
