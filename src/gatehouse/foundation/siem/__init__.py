"""Events for a SIEM, and their senders. The platform forwards the audit chain of an organization. An outpost forwards
the events of its own requests.

    events      converts a record to an event
    senders     one module for each type of receiver
    sending     sends a batch with the sender for its receiver
"""
