"""Notices to the portal about webhooks with dead letters. The portal shows them to the organizations (docs/portal.md).

A notice is queued in the transaction that makes a dead letter (`queue`). It is sent to `POST
{PORTAL_PUBLIC_URL}/v1/platform-notices` until the portal accepts it (`sending`). At most one notice of a webhook waits
at a time, however many dead letters the webhook has. Without `PORTAL_PUBLIC_URL`, nothing is queued.
"""
