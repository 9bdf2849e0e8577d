"""What came of an organization's requests, minute by minute (UTC), whatever their number: alerts and the summary of the
last hour read it instead of the records.

    latency  how long requests took, as a histogram
    table    the figures of a window

The keeper counts (`keeper/minutes.py`), in the transaction that stores the records. A request counts in the minute in
which it ended, so that one of ten minutes is in a window of five; of a stream that was interrupted that moment is not
known, and it counts in the minute in which it began.

    errors        the provider or the gateway failed: status 500 and above, or a stream that broke off
    blocked       a rule, a limit, a budget or a switch said no. Never an error too
    dlp_triggers  requests in which a DLP rule did something; logging alone does not count
    latency       of requests that something answered or failed to answer; not of those that were refused
"""
