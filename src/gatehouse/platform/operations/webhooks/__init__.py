"""Webhooks: events, signed and sent to an organization's own receivers (docs/webhooks.md).

    pending -> delivered      an attempt gets 2xx
    pending -> failed         an attempt fails; retries follow after 1 s and after 5 s
    failed  -> delivered      a retry gets 2xx
    failed  -> dead_letter    30 s after the third failure; there is no further attempt
    pending -> failed         final, without an attempt: the URL is blocked, or the webhook was disabled
    failed, dead_letter -> pending   an administrator replays a delivery that has no further attempt

Events become deliveries when the outbox is read (`listening`): one delivery for each webhook that subscribes to the
event. The deliveries of a webhook are sent one after the other, in the order of the events. While one waits for its
next attempt, the later ones wait too; after its third failure, they continue. Every process that runs jobs delivers
(`delivering`). A lease (`queue`) ensures that one process at a time sends to a webhook.
"""
