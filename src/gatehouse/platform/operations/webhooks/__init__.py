"""Webhooks: events, signed and sent to an organization's own receivers (docs/webhooks.md).

    pending -> delivered      an attempt gets 2xx
    pending -> failed         an attempt fails; retried after 1 s, then after 5 s
    failed  -> delivered      as above
    failed  -> dead_letter    30 s after the third failure; there is no further attempt
    pending -> failed         finally, without an attempt: the URL is blocked, or the webhook was disabled

Events become deliveries when the outbox is read (`listening`), one for each webhook that subscribes to the event. A
webhook's deliveries are sent one after the other, in the order of the events: while one waits for its next attempt, the
later ones wait too; after its third failure they go on. Every process that runs jobs delivers (`delivering`); a lease
(`queue`) ensures that one process at a time sends to a webhook.
"""
