"""The accounts of users at MCP servers, which the gateway uses for their calls after their consent (docs/mcp.md).

    begun -> connected     the user has consented at the authorization server, in the browser in which the consent began
    connected -> ended     the authorization server refuses to renew the tokens: the user must connect again
    any -> removed         by the user or an administrator, with the server or the user, or by a change of the server's
                           address or client

Tokens belong to one user and one server. `tokens` reads, renews and caches them for calls; `consents` obtains them;
`revocations` revokes those of removed connections; `authorization_servers` are the requests to authorization servers.
"""
