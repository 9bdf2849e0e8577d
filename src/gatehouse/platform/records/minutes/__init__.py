"""Totals of an organization's requests by the minute and by the hour (UTC). Alerts, the summary of the last hour and
the series of usage read these totals instead of the records.

    latency  the histogram of latencies
    table    the totals of a window, and of each hour or day
    aliases  the totals of each hour or day of model aliases and their deployments

The keeper adds to the totals (`keeper/rollups/minutes.py`, `aliases.py`) in the transaction that stores the records. A
request counts in the minute in which it ended, so a request of ten minutes is in a window of five minutes. The end of
an interrupted stream is unknown, so the stream counts in the minute in which it began.

    errors        the provider or the gateway failed: status 500 and above, or a stream that ended early
    blocked       a rule, a limit, a budget or a kill switch stopped the request; this is not treated as an error
    dlp_triggers  requests in which a DLP rule acted; logging alone does not count
    latency       latencies of requests that were answered or failed, without those that were refused
"""
