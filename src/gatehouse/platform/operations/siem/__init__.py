"""Forwards an organization's records to its SIEM (docs/siem.md): every audit event, every DLP event, and the events of
the outbox, with the field names of the Elastic Common Schema.

    off -> forwarding       `enabled`, and the flag `audit_log_streaming` is on; from the head of the audit chain on
    forwarding -> waiting   the receiver does not accept a batch; retried with backoff: 1 s, 2 s, 4 s ... 60 s at most
    waiting -> forwarding   it accepts one

Audit events are read from the chain by a cursor, which moves when the receiver has accepted them: the backlog is the
distance to the head of the chain, and uses no memory. DLP events and events of the outbox are not in the chain: while
an organization forwards, they wait in a queue of its own. Each event is sent at least once, in order; a receiver
recognizes a repeated one by its `event.id`.

    sending     sends to a receiver, with the unsealed secret; events and senders are those of `foundation.siem`
    queue       leases and batches: the queries of the forwarding processes
    forwarding  takes leases, and sends
    listening   adds the outbox's events to the queue
    backlog     the backlog of all organizations: a metric, and what the archiver must not remove
"""
