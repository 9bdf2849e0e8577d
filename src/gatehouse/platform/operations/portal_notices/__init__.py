"""Notices to the portal about webhooks with dead letters, which it shows to their organizations (docs/portal.md).

A notice is queued in the transaction that makes a dead letter (`queue`). It is sent to
`POST {PORTAL_PUBLIC_URL}/v1/platform-notices` until the portal accepts it (`telling`). At most one notice of a webhook
waits at a time, however many of its deliveries are dead. Without `PORTAL_PUBLIC_URL` nothing is queued.
"""
