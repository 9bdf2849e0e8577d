"""Usage records: one for each request to a model, with what it used and what it cost (reference 1, Paginated
read-back lists).

    success      answered
    refused      by a rule of the gateway, or because nothing could answer
    error        tried at a provider, which failed
    cancelled    the client left; what was used until then is counted
    interrupted  the process ended during the stream: that it began is known, what it used is not

The drain copies them from the journal, together with the count of each user and day (`usage_counts`; what was counted
lately is in `usage_count_deltas`); triggers keep those of all users. From these the list takes its total and finds far
pages without a scan.
"""
