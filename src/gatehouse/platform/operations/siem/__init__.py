"""Forwards the records of an organization to its SIEM (docs/siem.md): every audit event, every DLP event, and the
events of the outbox, with the field names of the Elastic Common Schema.

    off -> forwarding       `enabled` is set, and the flag `audit_log_streaming` is on; begins at the head of the audit
    chain
    forwarding -> waiting   the receiver does not accept a batch; retries follow after 1, 2, 4 ... 60 seconds
    waiting -> forwarding   the receiver accepts a batch

Audit events are read from the chain with a cursor, which advances when the receiver has accepted them. So the backlog
is the distance to the head of the chain, and uses no memory. DLP events and events of the outbox are not in the chain.
They wait in a separate queue while an organization forwards. Each event is sent at least once, in order. A receiver
recognizes a repeated event by its `event.id`.

    sending     sends to a receiver with its unsealed secret; events and senders come from `foundation.siem`
    queue       leases and batches: the queries of the forwarding processes; the events of the outbox; the backlog
    forwarding  takes leases, and sends
"""
