"""Events for a SIEM and the senders to it. The platform forwards an organization's audit chain, an outpost its own
requests.

    events      converts a record to an event
    senders     one module for each type of receiver; `sending` has them in a dictionary
"""
