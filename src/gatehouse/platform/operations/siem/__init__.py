"""Forwarding of an organization's records to its SIEM (decisions 5): every audit event, every DLP event, and what the
outbox tells of, as the Elastic Common Schema names their fields.

    off -> forwarding       `enabled`, and the flag `audit_log_streaming` is on; from the head of the audit chain on
    forwarding -> waiting   the receiver does not take a batch; tried again after 1 s, 2 s, 4 s ... a minute at most
    waiting -> forwarding   it takes one

Audit events are read from the chain by a cursor, which moves when the receiver has taken them: what waits is simply the
distance to the head, and grows in no memory. DLP events and the outbox's events have no such place: while an
organization forwards, they wait in a queue of its own. Each is sent at least once, in its order; whoever gets one twice
knows it by its `event.id`.

    sending     to a receiver, with the sealed secret; events and senders are `foundation.siem`'s
    queue       whose turn it is, and what is next: the queries of the forwarding processes
    forwarding  takes turns, and sends
    listening   the outbox's events into the queue
    backlog     what waits, of all organizations: the figures, and what the archiver must leave
"""
