"""Events for a SIEM, and the ways to one: for the platform, which forwards an organization's chain, and for an outpost,
which tells of its own requests.

    events      a record -> what is sent of it
    senders     one module a type of receiver; `sending` holds them as a dictionary
"""
