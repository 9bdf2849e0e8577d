"""DLP events: what detection found and what was done about it, never the matched text (reference 1, Paginated
read-back lists).

The database itself counts them by day (`dlp_event_counts`), whoever stores them; from that the list takes its total
and finds far pages without a scan.
"""
