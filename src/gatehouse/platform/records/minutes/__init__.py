"""Totals of an organization's requests by the minute and by the hour (UTC). Alerts, the summary of the last hour and
the series of usage read them instead of the records.

    latency  the histogram of latencies
    table    the totals of a window, and of each hour or day

The keeper adds to them (`keeper/minutes.py`) in the transaction that stores the records. A request counts in the minute
in which it ended, so that a request of ten minutes is in a window of five. The end of an interrupted stream is unknown,
so it counts in the minute in which it began.

    errors        the provider or the gateway failed: status 500 and above, or a stream that broke off
    blocked       a rule, a limit, a budget or a kill switch stopped the request; such a request is no error
    dlp_triggers  requests in which a DLP rule acted; logging alone does not count
    latency       latencies of requests that were answered or failed; not of those that were refused
"""
