"""Usage records: one for each model request, with its tokens and cost (docs/records.md).

    success      the request was answered
    refused      a rule of the gateway refused it, or no model was available
    error        the provider failed
    cancelled    the client disconnected; the usage until then is counted
    interrupted  the process ended during the stream; the usage is unknown

The keeper copies the records from the journal, together with their counts by user and day (`usage_counts`; recent
counts are in `usage_count_deltas`). Triggers maintain the counts of all users together. The list uses the counts for
its total, and to find far pages without a scan.
"""
