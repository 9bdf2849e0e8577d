"""Webhooks: events, signed and sent to an organization's own receivers (reference 3, Webhooks; decisions 1 and 7).

    pending -> delivered      an attempt gets 2xx
    pending -> failed         an attempt fails; tried again after 1 s, then after 5 s
    failed  -> delivered      as above
    failed  -> dead_letter    30 s after the third failure; nothing tries it again
    pending -> failed         for good, without another attempt: the URL is blocked, or the webhook was disabled

An event becomes deliveries when the outbox is read (`listening`), one for each webhook that wants it. A webhook's are
sent one after the other, in the order of the events: while one waits for its next attempt, the ones behind it wait too;
after its third failure they go on. Every process that works on jobs delivers (`delivering`); which of them has a
webhook's turn is a lease (`queue`).
"""
