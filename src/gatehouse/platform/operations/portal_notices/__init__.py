"""What the portal is told of, so that organizations see it there (decisions 8, Wires): webhooks with dead letters.

A notice is noted in the transaction that makes a dead letter (`queue`), and goes from there to
`POST {PORTAL_PUBLIC_URL}/v1/platform-notices` until the portal has taken it (`telling`). Of one webhook one waits at
a time, however many letters are dead. Without `PORTAL_PUBLIC_URL` nothing is noted.
"""
